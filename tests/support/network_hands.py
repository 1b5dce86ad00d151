"""A process that does one thing to a network and is killed in the middle of it.

`python -m tests.support.network_hands URL WHEN INSTANCE ACTION JSON` acts as an instance of the network `local`,
and kills itself: WHEN is `inside`, before what it did is committed, `after`, when it is committed and nobody
was told, or `waiting`, when it is committed and it waits for an answer.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import anyio

from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.network_store import SqlNetworkStore
from orchestrator.domain.network.identities import NetworkName
from orchestrator.ports.network import NetworkTransaction
from tests.support.networks import Caller, RandomIds, World

T = TypeVar("T")


def die() -> None:
    """As nothing can be prepared for."""
    os.kill(os.getpid(), signal.SIGKILL)


class DyingStore(SqlNetworkStore):
    """Kills the process when a change has done its work and is not committed."""

    async def change(self, network: NetworkName, work: Callable[[NetworkTransaction], T]) -> T:
        def run(tx: NetworkTransaction) -> T:
            work(tx)
            die()
            raise AssertionError

        return await super().change(network, run)


async def act(url: str, when: str, instance_id: str, action: str, arguments: dict[str, Any]) -> None:
    """Do it, and die."""
    database = await Database.open(url)
    store = DyingStore(database) if when == "inside" else SqlNetworkStore(database)
    world = World(store, ids=RandomIds(), sent=die if when == "waiting" else lambda: None)
    if action == "push":
        await world.service.inbox.push(instance_id)
    elif action == "acknowledge_push":
        await world.service.inbox.acknowledge_push(instance_id, arguments["ids"])
    elif action == "leave":
        await world.service.leave(instance_id, "killed")
    else:
        agent = instance_id.partition("-")[0]
        await Caller(world.tools | world.toolbox, "local", agent, instance_id)(action, **arguments)
    die()


if __name__ == "__main__":
    anyio.run(act, sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], json.loads(sys.argv[5]))

"""Processes that do one thing to a network and are killed in the middle of it."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from typing import Any, TypeVar

import anyio
import anyio.to_thread

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


async def killed(url: str, when: str, instance_id: str, action: str, **arguments: Any) -> None:
    """Have a process of its own act as an instance of the network `local`, and be killed.

    It is forked off a server that has imported all of this once, as that takes a hundred times as long as what
    it does.

    Args:
        when: `inside`, before what it did is committed; `after`, when it is committed and nobody was told; or
            `waiting`, when it is committed and it waits for an answer.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    process = context.Process(target=_run, args=(url, when, instance_id, action, arguments))
    process.start()
    await anyio.to_thread.run_sync(process.join, 60)
    assert process.exitcode == -signal.SIGKILL
    process.close()


def _run(*what: Any) -> None:
    anyio.run(_act, *what)


async def _act(url: str, when: str, instance_id: str, action: str, arguments: dict[str, Any]) -> None:
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

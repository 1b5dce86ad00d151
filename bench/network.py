"""`python -m bench.network`: what a message between agents costs, against bare statements that keep the same.

A round trip is an ask, the asked agent's inbox, its reply, and the asker's inbox: four durable transactions.
The bare side does what has to be done in any case: as many transactions with the inserts, updates and selects
of a message and its copy, over the same tables. The sweep is measured with few and with many pending tasks.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path

from sqlalchemy import Connection, insert, select, update

from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.network_store import SqlNetworkStore
from orchestrator.adapters.db.signing_keys import SqlSigningKeyStore
from orchestrator.adapters.db.tables_network import network_deliveries, network_messages, network_threads
from orchestrator.adapters.ids.uuid7 import Uuid7Ids
from orchestrator.domain.network.agents import AgentDefinition
from orchestrator.domain.network.identities import Actor, AgentName, InstanceId, NetworkName, TaskId
from orchestrator.domain.network.task_states import TaskState
from orchestrator.domain.network.tasks import Target, Task, created
from orchestrator.ports.network import NetworkTransaction
from orchestrator.services.message_keys import MessageKeys
from orchestrator.services.network import NetworkService
from orchestrator.services.network_mail import Ask
from tests.support.postgres import PostgresServer, find_programs
from tests.support.sealing import make_sealer
from worker.clock import SystemClock

_NETWORK = NetworkName("bench")
_BATCH = 100
_BODY = "Which of the two should I take? " * 8


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured: the least of the rounds counts."""

    trips: int = 100
    rounds: int = 7
    few: int = 100
    many: int = 10_000


@dataclass(frozen=True, slots=True)
class Costs:
    """One database's figures, in milliseconds, the least of all rounds."""

    database: str
    trip_ms: float
    bare_ms: float
    sweep_few_ms: float
    sweep_many_ms: float

    @property
    def trip_ratio(self) -> float:
        """A round trip over its bare statements."""
        return self.trip_ms / self.bare_ms

    @property
    def sweep_ratio(self) -> float:
        """A sweep over many waiting tasks over one over few."""
        return self.sweep_many_ms / self.sweep_few_ms


@dataclass
class _Talk:
    """Two agents that ask and answer."""

    service: NetworkService
    calls: count[int] = field(default_factory=lambda: count(1))

    def actor(self, name: str) -> Actor:
        return Actor(_NETWORK, AgentName(name), InstanceId(f"{name}-1"), f"mcp-{next(self.calls)}")

    async def trip(self) -> None:
        sent = await self.service.mail.ask(self.actor("ann"), Ask(_BODY, to_agent="bob"))
        (asked,) = (await self.service.inbox.fetch(self.actor("bob"))).items
        assert asked.message is not None
        await self.service.mail.reply(self.actor("bob"), asked.message.thread_id, _BODY)
        (answer,) = (await self.service.inbox.fetch(self.actor("ann"))).items
        assert answer.message is not None
        assert answer.message.thread_id == sent.message.thread_id


@dataclass
class _Bare:
    """The same rows, without anything that decides."""

    database: Database
    clock: SystemClock
    ids: Uuid7Ids = field(default_factory=Uuid7Ids)

    async def trip(self) -> None:
        thread = self.ids.new()
        for sender, reader in (("ann", "bob"), ("bob", "ann")):
            await self.database.write(lambda c, s=sender, r=reader: self._send(c, thread, s, r))
            await self.database.write(lambda c, r=reader: self._fetch(c, r))

    def _send(self, connection: Connection, thread: str, sender: str, reader: str) -> None:
        now, message = self.clock.now(), self.ids.new()
        if sender == "ann":
            connection.execute(
                insert(network_threads).values(
                    network="bare", id=thread, subject="", participants=(), created_at=now
                )
            )
        connection.execute(
            insert(network_messages).values(
                network="bare", id=message, thread_id=thread, kind="ask", sender=sender, body=_BODY,
                sender_instance=sender, call_id=message, subject="", created_at=now, recipients=(),
                sequence=1, key_id="", signature="",
            )
        )  # fmt: skip
        connection.execute(
            insert(network_deliveries).values(
                network="bare", id=self.ids.new(), agent=reader, sender_instance=sender, message_id=message,
                created_at=now, state="waiting", held_call="", handed_out=0,
            )
        )  # fmt: skip

    def _fetch(self, connection: Connection, reader: str) -> None:
        copy, message = network_deliveries.c, network_messages.c
        waiting = select(copy.id, copy.message_id).where(
            copy.network == "bare", copy.agent == reader, copy.state == "waiting"
        )
        ((found, message_id),) = connection.execute(waiting).all()
        mine = (copy.network == "bare", copy.id == found)
        connection.execute(
            select(network_messages).where(message.network == "bare", message.id == message_id)
        ).one()
        connection.execute(update(network_deliveries).where(*mine).values(state="delivered"))


async def costs(name: str, url: str, plan: Plan) -> Costs:
    """Measure one database, which is empty."""
    database = await Database.open(url)
    try:
        await database.migrate()
        clock, ids = SystemClock(), Uuid7Ids()
        keys = MessageKeys(SqlSigningKeyStore(database, make_sealer(), purpose="messages"), clock, ids)
        await keys.load()
        store = SqlNetworkStore(database, keys)
        service = NetworkService(store, clock, ids)
        await _people(service, clock)
        talk, bare = _Talk(service), _Bare(database, clock)
        await talk.trip()
        await bare.trip()
        trips = [
            (await _ms(talk.trip, plan.trips), await _ms(bare.trip, plan.trips)) for _ in range(plan.rounds)
        ]
        await _add_waiting(store, clock, ids, plan.few)
        few = await _sweep_ms(service, plan.rounds)
        await _add_waiting(store, clock, ids, plan.many - plan.few)
        many = await _sweep_ms(service, plan.rounds)
        return Costs(name, min(one for one, _ in trips), min(one for _, one in trips), few, many)
    finally:
        await database.close()


async def _people(service: NetworkService, clock: SystemClock) -> None:
    await service.ensure_network(_NETWORK)
    for name in ("ann", "bob"):
        await service.register_agent(_NETWORK, AgentDefinition(AgentName(name), clock.now()))
        await service.join(_NETWORK, name, f"{name}-1", None)
        await service.heartbeat(f"{name}-1")
    await service.register_agent(_NETWORK, AgentDefinition(AgentName("away"), clock.now()))


async def _add_waiting(store: SqlNetworkStore, clock: SystemClock, ids: Uuid7Ids, more: int) -> None:
    """So many tasks, in hundreds, for an agent which is not there."""
    now = clock.now()

    def add(tx: NetworkTransaction) -> None:
        for _ in range(_BATCH):
            task = Task(
                id=TaskId(ids.new()), title="Do it.", objective="Do it.", acceptance_criteria=(),
                creator=AgentName("ann"), creator_instance=InstanceId("ann-1"), call_id=ids.new(),
                target=Target(agent=AgentName("away")), resource=None, state=TaskState.PENDING,
                created_at=now, updated_at=now,
            )  # fmt: skip
            tx.put_task(created(task, (), "nobody is there"))

    for _ in range(max(1, more // _BATCH)):
        await store.change(_NETWORK, add)


async def _sweep_ms(service: NetworkService, rounds: int) -> float:
    async def sweep() -> None:
        assert await service.sweep() == []

    return min([await _ms(sweep, 20) for _ in range(rounds)])


async def _ms(work: Callable[[], Awaitable[None]], times: int) -> float:
    begun = time.perf_counter()
    for _ in range(times):
        await work()
    return (time.perf_counter() - begun) * 1000 / times


def table(found: Sequence[Costs]) -> str:
    """One line a database."""
    lines = [f"{'':<12} {'trips/s':>8} {'x bare':>7} {'sweep ms, few':>14} {'many':>8} {'many/few':>9}"]
    lines += [
        f"{one.database:<12} {1000 / one.trip_ms:>8,.0f} {one.trip_ratio:>7.2f} {one.sweep_few_ms:>14.2f}"
        f" {one.sweep_many_ms:>8.2f} {one.sweep_ratio:>9.2f}"
        for one in found
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    usual = Plan()
    parser = argparse.ArgumentParser(prog="scripts/bench network", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    parser.add_argument("--trips", type=int, default=usual.trips, help="round trips of one round")
    parser.add_argument("--rounds", type=int, default=usual.rounds)
    parser.add_argument("--few", type=int, default=usual.few, help="pending tasks")
    parser.add_argument("--many", type=int, default=usual.many, help="pending tasks")
    names = ["sqlite", "postgresql"]
    parser.add_argument("--databases", nargs="+", choices=names, default=names)
    given = parser.parse_args(arguments)
    plan = Plan(given.trips, given.rounds, given.few, given.many)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="portside-bench-")))
        found: list[Costs] = []
        if "sqlite" in given.databases:
            found.append(asyncio.run(costs("sqlite", f"sqlite:///{folder / 'bench.db'}", plan)))
        if "postgresql" in given.databases:
            server = stack.enter_context(PostgresServer(find_programs()))
            found.append(asyncio.run(costs("postgresql", server.url(server.create()), plan)))
    print(table(found))
    if given.json:
        figures = [{**asdict(one), "ratio": one.trip_ratio, "sweep": one.sweep_ratio} for one in found]
        given.json.write_text(json.dumps({"costs": figures}, indent=2) + "\n")


if __name__ == "__main__":
    main()

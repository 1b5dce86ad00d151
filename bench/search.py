"""What a search for agents costs beside one embedding of its query: `scripts/bench search`.

Profiles are in SQLite, as a network's are; their vectors are random, as nothing of the cost depends on
what they say. One agent in ten is served by a live instance, the others are started on demand.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.network_store import SqlNetworkStore
from orchestrator.adapters.db.profile_vectors import SqlProfileVectorStore
from orchestrator.adapters.embedding.minilm import MiniLmEmbedder
from orchestrator.domain.network.agent_search import AgentQuery
from orchestrator.domain.network.agents import AgentDefinition, Instance, InstanceState, LaunchSettings
from orchestrator.domain.network.capabilities import Capability
from orchestrator.domain.network.identities import Actor, AgentName, InstanceId, NetworkName
from orchestrator.domain.network.profiles import profile_texts
from orchestrator.ports.network import NetworkTransaction
from orchestrator.services.agent_search import AgentSearch
from worker.clock import SystemClock

if TYPE_CHECKING:
    from orchestrator.ports.embedder import Matrix

NETWORK = NetworkName("local")
QUERY = "someone who can find out why our nightly import into the warehouse is slow"
PROFILES = (1_000, 10_000)
_TOGETHER = 200


@dataclass(frozen=True, slots=True)
class Cost:
    """What something takes: the least and the middle of all repetitions."""

    name: str
    least_ms: float
    middle_ms: float


def agents(count: int, now: datetime) -> list[AgentDefinition]:
    """Profiles of usual size: a summary, a description, two capabilities, an example, tags."""
    return [
        AgentDefinition(
            AgentName(f"agent-{number:05}"),
            now,
            summary=f"Takes care of matters of kind {number}",
            description=f"Looks into cases of kind {number}, says what is wrong with them and repairs them",
            capabilities=tuple(Capability(f"c{one}", f"Work {number}.{one}") for one in range(2)),
            examples=(f"Repair case {number}",),
            tags=(f"kind-{number % 50}",),
            launch=LaunchSettings(autostart=number % 10 != 0),
        )
        for number in range(count)
    ]


async def prepared(folder: Path, count: int, embedder: MiniLmEmbedder) -> Database:
    """A database with that many profiles and their vectors."""
    database = await Database.open(f"sqlite:///{folder / f'{count}.db'}")
    await database.migrate()
    store, vectors, now = SqlNetworkStore(database), SqlProfileVectorStore(database), SystemClock().now()
    await store.change(NETWORK, lambda tx: tx.create(now))
    random, made = np.random.default_rng(7), agents(count, now)
    for start in range(0, count, _TOGETHER):
        some = made[start : start + _TOGETHER]
        await store.change(NETWORK, lambda tx, some=some: _fill(tx, some, now))
        rows: dict[str, Matrix] = {}
        for texts in map(profile_texts, some):
            matrix = random.standard_normal((len(texts.parts) + 1, embedder.dimension), np.float32)
            rows[texts.key] = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
        await vectors.save(embedder.model_id, rows)
    return database


def _fill(tx: NetworkTransaction, made: Sequence[AgentDefinition], now: datetime) -> None:
    for agent in made:
        tx.put_definition(agent)
        if not agent.launch.autostart:
            name = InstanceId(f"i-{agent.name}")
            tx.put_instance(Instance(name, agent.name, None, InstanceState.ACTIVE, now, now))


async def measured(name: str, run: Callable[[], Awaitable[object]], repetitions: int) -> Cost:
    """Time one thing again and again."""
    times: list[float] = []
    for _ in range(repetitions):
        start = time.perf_counter()
        await run()
        times.append((time.perf_counter() - start) * 1_000)
    return Cost(name, min(times), sorted(times)[len(times) // 2])


async def costs(repetitions: int) -> list[Cost]:
    """One embedding, and searches over each number of profiles."""
    embedder, found = MiniLmEmbedder(), list[Cost]()
    await embedder.embed([QUERY])
    found.append(await measured("one embedding of the query", lambda: embedder.embed([QUERY]), repetitions))
    actor = Actor(NETWORK, AgentName("agent-00000"), InstanceId("i-agent-00000"), "1:bench")
    with tempfile.TemporaryDirectory(prefix="portside-bench-") as folder:
        for count in PROFILES:
            database = await prepared(Path(folder), count, embedder)
            store, vectors = SqlNetworkStore(database), SqlProfileVectorStore(database)

            def new(store: SqlNetworkStore = store, vectors: SqlProfileVectorStore = vectors) -> AgentSearch:
                return AgentSearch(store, embedder, vectors, SystemClock(), patience_s=600)

            search, query = new(), AgentQuery(QUERY, strictness=0.0)

            async def change_and_search(
                store: SqlNetworkStore = store, search: AgentSearch = search, query: AgentQuery = query
            ) -> None:
                def change(tx: NetworkTransaction) -> None:
                    first = tx.definition(actor.agent)
                    assert first is not None
                    tx.put_definition(replace(first, summary=f"Takes care of {time.perf_counter()}"))

                await store.change(NETWORK, change)
                await search.search(actor, query)

            await search.search(actor, query)
            usual = f"search over {count:,} profiles"
            found += [
                await measured(usual, lambda s=search, q=query: s.search(actor, q), repetitions),
                await measured(f"{usual}, one just changed", change_and_search, 3),
                await measured(
                    f"{usual}, the first of a process", lambda n=new, q=query: n().search(actor, q), 3
                ),
            ]
            await database.close()
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="scripts/bench search", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    parser.add_argument("--repetitions", type=int, default=40)
    given = parser.parse_args(arguments)
    found = asyncio.run(costs(given.repetitions))
    for one in found:
        ratio = one.middle_ms / found[0].middle_ms
        print(f"{one.name:<55} {one.least_ms:>8.1f} ms least {one.middle_ms:>8.1f} ms middle  x {ratio:.2f}")
    if given.json:
        given.json.write_text(json.dumps([asdict(one) for one in found], indent=2) + "\n")


if __name__ == "__main__":
    main()

"""A process that writes to a store until it is done or killed, and says what was acknowledged.

`python -m tests.support.store_writer URL ROUNDS` writes a line after each round that was stored: one event
and one counted iteration of job `job-1`.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import anyio

from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.events import SqlEventStore
from orchestrator.adapters.db.jobs import SqlJobStore
from orchestrator.domain.jobs import JobId
from orchestrator.ports.events import NewEvent
from tests.support.jobs import START


async def write(url: str, rounds: int) -> None:
    database = await Database.open(url)
    jobs, events = SqlJobStore(database), SqlEventStore(database)
    for _ in range(rounds):
        stored = await events.append(JobId("job-1"), [NewEvent("writer", None, "log", START, {})])
        await jobs.update(JobId("job-1"), lambda job: replace(job, iterations=job.iterations + 1))
        sys.stdout.write(f"{stored[0].position}\n")
        sys.stdout.flush()
    await database.close()


if __name__ == "__main__":
    anyio.run(write, sys.argv[1], int(sys.argv[2]))

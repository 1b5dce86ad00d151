"""Several processes on one database, and processes that are killed (PD-6)."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import AsyncExitStack

import anyio
import pytest
from anyio.abc import Process

from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.events import SqlEventStore
from orchestrator.adapters.db.jobs import SqlJobStore
from orchestrator.domain.jobs import JobId
from tests.support.jobs import make_job

JOB = JobId("job-1")


async def start_writer(stack: AsyncExitStack, url: str, rounds: int) -> Process:
    command = [sys.executable, "-m", "tests.support.store_writer", url, str(rounds)]
    process = await anyio.open_process(command, stdin=subprocess.DEVNULL, stderr=None)
    return await stack.enter_async_context(process)


async def read_lines(process: Process, *, until: int) -> bytes:
    assert process.stdout is not None
    printed = b""
    while printed.count(b"\n") < until:
        printed += await process.stdout.receive()
    return printed


async def read_rest(process: Process) -> bytes:
    assert process.stdout is not None
    return b"".join([chunk async for chunk in process.stdout])


async def state_of(database: Database) -> tuple[int, list[int]]:
    job = await SqlJobStore(database).get(JOB)
    assert job is not None
    positions = [event.position for event in await SqlEventStore(database).read(JOB, limit=10_000)]
    return job.iterations, positions


async def test_two_processes_on_one_database_lose_nothing(database: Database, database_url: str):
    await SqlJobStore(database).add(make_job())
    async with AsyncExitStack() as stack:
        writers = [await start_writer(stack, database_url, 20) for _ in range(2)]
        for writer in writers:
            await read_lines(writer, until=20)
            assert await writer.wait() == 0
    assert await state_of(database) == (40, list(range(1, 41)))


@pytest.mark.parametrize("rounds", [1, 9])
async def test_a_killed_process_loses_nothing_it_was_told_is_stored(
    database: Database, database_url: str, rounds: int
):
    await SqlJobStore(database).add(make_job())
    async with AsyncExitStack() as stack:
        writer = await start_writer(stack, database_url, 100_000)
        printed = await read_lines(writer, until=rounds)
        writer.send_signal(signal.SIGKILL)
        printed += await read_rest(writer)
        await writer.wait()
    acknowledged = printed.count(b"\n")
    with anyio.fail_after(10):
        iterations, positions = await state_of(database)
        await SqlJobStore(database).update(JOB, lambda job: job)
    assert positions == list(range(1, len(positions) + 1))
    # The round in flight may be stored in part or whole: two transactions, neither acknowledged.
    assert acknowledged <= len(positions) <= acknowledged + 1
    assert acknowledged <= iterations <= len(positions)

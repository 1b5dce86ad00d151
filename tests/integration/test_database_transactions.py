"""Transactions end whole, in time, and whatever happens to whoever asked for them."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import replace

import anyio
import psycopg
import pytest
from sqlalchemy import Connection, text

from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.jobs import SqlJobStore
from orchestrator.domain.jobs import Job, JobId
from orchestrator.ports.errors import StoreError, StoreUnavailable
from tests.support.jobs import make_job
from tests.support.postgres import PostgresServer

JOB = JobId("job-1")


def one_more(job: Job) -> Job:
    return replace(job, iterations=job.iterations + 1)


async def iterations(database: Database) -> int:
    job = await SqlJobStore(database).get(JOB)
    assert job is not None
    return job.iterations


@contextmanager
def job_held_by_another(url: str) -> Generator[None]:
    """Another process is in the middle of changing the job."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield
    else:
        with psycopg.connect(url) as connection:
            connection.execute("UPDATE jobs SET iterations = 99")
            yield
            connection.rollback()


async def test_a_job_that_another_process_holds_is_unavailable_until_it_lets_go(database_url: str):
    database = await Database.open(database_url, deadline_s=1)
    jobs = SqlJobStore(database)
    await jobs.add(make_job())
    with job_held_by_another(database_url):
        with anyio.fail_after(10), pytest.raises(StoreUnavailable):
            await jobs.update(JOB, one_more)
        assert await iterations(database) == 0
    assert await jobs.update(JOB, one_more) == make_job(iterations=1)
    await database.close()


async def test_a_caller_that_is_cancelled_in_a_transaction_leaves_it_whole(database: Database):
    """BR-128: what began to be written is written, though the client is gone."""
    jobs = SqlJobStore(database)
    await jobs.add(make_job())

    def change(job: Job) -> Job:
        scope.cancel()
        return one_more(job)

    with anyio.CancelScope() as scope:
        await jobs.update(JOB, change)
        await anyio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    assert await iterations(database) == 1


async def test_a_task_that_is_cancelled_in_a_transaction_leaves_it_whole(database: Database):
    """So does plain asyncio cancellation, which no scope holds off."""
    jobs = SqlJobStore(database)
    await jobs.add(make_job())

    def change(job: Job) -> Job:
        task.cancel()
        return one_more(job)

    task = asyncio.create_task(jobs.update(JOB, change))
    await asyncio.wait([task])
    assert task.cancelled()
    assert await iterations(database) == 1


async def test_tasks_that_are_cancelled_at_any_moment_leave_no_lock_and_no_connection(database: Database):
    jobs = SqlJobStore(database)
    await jobs.add(make_job())
    for turns in range(40):
        task = asyncio.create_task(jobs.update(JOB, one_more))
        for _ in range(turns):
            await anyio.lowlevel.checkpoint()
        task.cancel()
        await asyncio.wait([task])
    gc.collect()  # a connection that was lost on the way would complain now
    before = await iterations(database)
    with anyio.fail_after(20):
        await jobs.update(JOB, one_more)
    assert await iterations(database) == before + 1


async def test_a_caller_that_is_cancelled_in_the_queue_never_begins(sqlite_url: str):
    database = await Database.open(sqlite_url)
    jobs = SqlJobStore(database)
    await jobs.add(make_job())
    async with anyio.create_task_group() as group:
        with job_held_by_another(sqlite_url):
            group.start_soon(jobs.update, JOB, one_more)
            await anyio.lowlevel.checkpoint()
            with anyio.move_on_after(0.05) as scope:
                await jobs.update(JOB, one_more)
            assert scope.cancelled_caught
    assert await iterations(database) == 1
    await database.close()


async def test_a_turn_that_does_not_come_in_time_is_unavailable(sqlite_url: str):
    database = await Database.open(sqlite_url, deadline_s=0.4)
    jobs = SqlJobStore(database)
    await jobs.add(make_job())
    failures: list[StoreUnavailable] = []

    async def update() -> None:
        try:
            await jobs.update(JOB, one_more)
        except StoreUnavailable as error:
            failures.append(error)

    with job_held_by_another(sqlite_url), anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(update)
    assert len(failures) == 5
    await database.close()


async def test_readers_do_not_wait_for_a_writer(database: Database, database_url: str):
    await SqlJobStore(database).add(make_job())
    with job_held_by_another(database_url), anyio.fail_after(10):
        assert await iterations(database) == 0


async def test_work_that_raises_is_undone(database: Database):
    await SqlJobStore(database).add(make_job())

    def work(connection: Connection) -> None:
        connection.execute(text("UPDATE jobs SET iterations = 5"))
        raise LookupError

    with pytest.raises(LookupError):
        await database.write(work)
    assert await iterations(database) == 0


async def test_sqlite_keeps_a_commit_through_the_loss_of_power(sqlite_url: str):
    database = await Database.open(sqlite_url)

    def pragmas(connection: Connection) -> list[object]:
        names = ("journal_mode", "synchronous", "foreign_keys")
        return [connection.scalar(text(f"PRAGMA {name}")) for name in names]

    assert await database.read(pragmas) == ["wal", 2, 1]
    await database.close()


@pytest.mark.postgres
async def test_a_restarted_server_is_found_again(postgres_url: str, postgres_server: PostgresServer):
    database = await Database.open(postgres_url)
    jobs = SqlJobStore(database)
    await jobs.add(make_job())
    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(jobs.get, JOB)
    await anyio.to_thread.run_sync(postgres_server.restart)
    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(jobs.update, JOB, one_more)
    assert await iterations(database) == 5
    await database.close()


@pytest.mark.postgres
async def test_a_server_that_is_not_there_is_unavailable():
    database = await Database.open("postgresql://nobody:hunter2@127.0.0.1:9/none")
    for call in (database.check, database.migrate, SqlJobStore(database).list):
        with pytest.raises(StoreUnavailable) as failure:
            await call()
        assert "hunter2" not in f"{failure.value} {failure.value.__cause__}"
    await database.close()


async def test_a_file_that_is_no_database_is_said_so(sqlite_url: str):
    with open(sqlite_url.removeprefix("sqlite:///"), "wb") as file:  # noqa: ASYNC230, PTH123
        file.write(b"not a database " * 1000)
    database = await Database.open(sqlite_url)
    for call in (database.check, database.migrate):
        with pytest.raises(StoreError, match="damaged or not a SQLite database"):
            await call()
    await database.close()

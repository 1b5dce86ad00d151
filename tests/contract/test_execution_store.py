"""What every `ExecutionStore` does (PD-5, PD-6)."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.executions import SqlExecutionStore
from orchestrator.adapters.db.jobs import SqlJobStore
from orchestrator.domain.jobs import JobId
from orchestrator.ports.errors import OwnerMissing
from orchestrator.ports.executions import Execution, ExecutionState, ExecutionStore
from tests.support.jobs import START, make_job

JOB = JobId("job-1")


@pytest.fixture
async def executions(database: Database) -> ExecutionStore:
    await SqlJobStore(database).add(make_job("job-1"))
    await SqlJobStore(database).add(make_job("job-2"))
    return SqlExecutionStore(database)


def make_execution(key: str = "1:call", **changes: Any) -> Execution:
    given: dict[str, Any] = {
        "job_id": JOB,
        "key": key,
        "fingerprint": "ab" * 32,
        "tool_name": "search",
        "runner": "runner-1",
        "state": ExecutionState.RUNNING,
        "started_at": START,
    }
    return Execution(**(given | changes))


async def test_a_call_is_begun_once_and_then_found(executions: ExecutionStore):
    first = make_execution()
    assert await executions.begin(first) is None
    assert await executions.begin(make_execution(runner="runner-2", fingerprint="other")) == first
    assert await executions.get(JOB, first.key) == first


async def test_the_same_key_in_another_job_is_another_call(executions: ExecutionStore):
    assert await executions.begin(make_execution()) is None
    assert await executions.begin(make_execution(job_id=JobId("job-2"))) is None


@pytest.mark.parametrize("pair", [("a\x00", "a"), ("a", "A"), ("a\x00", "a\x1a0000"), ("\u00e9", "e\u0301")])
async def test_keys_that_only_look_alike_are_different_calls(
    executions: ExecutionStore, pair: tuple[str, str]
):
    for key in pair:
        assert await executions.begin(make_execution(key)) is None


async def test_a_finished_call_keeps_its_first_answer(executions: ExecutionStore):
    await executions.begin(make_execution())
    await executions.finish(JOB, "1:call", {"output": {"result": "first", "text": "\x00\ud800"}})
    await executions.finish(JOB, "1:call", {"output": {"result": "second"}})
    standing = await executions.begin(make_execution(runner="runner-2"))
    assert standing == make_execution(
        state=ExecutionState.FINISHED, answer={"output": {"result": "first", "text": "\x00\ud800"}}
    )


async def test_finishing_a_call_that_is_not_there_is_an_error(executions: ExecutionStore):
    with pytest.raises(OwnerMissing):
        await executions.finish(JOB, "never", {"output": {}})


async def test_a_released_call_may_begin_again(executions: ExecutionStore):
    await executions.begin(make_execution())
    await executions.release(JOB, "1:call")
    assert await executions.get(JOB, "1:call") is None
    assert await executions.begin(make_execution()) is None


async def test_a_finished_call_is_not_released(executions: ExecutionStore):
    await executions.begin(make_execution())
    await executions.finish(JOB, "1:call", {"output": {}})
    await executions.release(JOB, "1:call")
    assert await executions.get(JOB, "1:call") is not None


async def test_nothing_begins_for_a_job_that_is_not_there(executions: ExecutionStore):
    with pytest.raises(OwnerMissing):
        await executions.begin(make_execution(job_id=JobId("gone")))


async def test_of_many_runners_that_begin_a_call_one_runs_it(executions: ExecutionStore, database_url: str):
    other = await Database.open(database_url)
    answers: list[Execution | None] = []

    async def begin(store: ExecutionStore, runner: str) -> None:
        answers.append(await store.begin(make_execution(runner=runner)))

    async with anyio.create_task_group() as group:
        for number in range(10):
            group.start_soon(begin, executions, f"runner-1-{number}")
            group.start_soon(begin, SqlExecutionStore(other), f"runner-2-{number}")
    await other.close()
    assert answers.count(None) == 1
    standing = await executions.get(JOB, "1:call")
    assert [answer for answer in answers if answer is not None] == [standing] * 19


async def test_begin_and_release_in_a_race_always_answer(executions: ExecutionStore, database_url: str):
    """A row that vanishes between the conflict and the look at it lets the next one in."""
    other = await Database.open(database_url)

    async def run(store: ExecutionStore, runner: str) -> None:
        for _ in range(10):
            if await store.begin(make_execution(runner=runner)) is None:
                await store.release(JOB, "1:call")

    async with anyio.create_task_group() as group:
        for store in (executions, SqlExecutionStore(other)):
            for number in range(4):
                group.start_soon(run, store, f"runner-{number}")
    await other.close()
    assert await executions.get(JOB, "1:call") is None


async def test_calls_go_with_their_job(executions: ExecutionStore, database: Database):
    await executions.begin(make_execution())
    await SqlJobStore(database).delete(JOB)
    assert await executions.get(JOB, "1:call") is None

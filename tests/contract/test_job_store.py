"""What every `JobStore` does (PD-6)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import anyio
import pytest

from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.jobs import SqlJobStore
from orchestrator.domain.jobs import IllegalTransition, Job, JobId, JobMode, JobSpec, JobState
from orchestrator.ports.errors import AlreadyExists
from orchestrator.ports.jobs import JobStore
from tests.support.jobs import START, make_job


@pytest.fixture
def jobs(database: Database) -> JobStore:
    return SqlJobStore(database)


async def test_a_job_comes_back_as_it_was_stored(jobs: JobStore):
    spec = JobSpec(
        title="Ünïcode \U0001f600",
        task="line\nline",
        agent="coder",
        network="team",
        mode=JobMode.IN_PROCESS,
        model="openai:m",
        image="python:3.12-slim",
        system_prompt="Be brief.",
        grants=frozenset({"deploy", "mail"}),
        secrets={"GITHUB": "GITHUB_TOKEN"},
        timeout_s=12.5,
        max_iterations=7,
        max_tokens=1000,
        memory_bytes=2**40,
        cpus=0.5,
        workspace_sha256="ab" * 32,
        workspace_bytes=5 * 2**30,
    )
    job = make_job(
        spec=spec,
        state=JobState.COMPLETED,
        attempt=3,
        reason="because",
        message="done",
        result={"b": [1, 2.5, None, "x"], "a": True},
        iterations=9,
        model_requests=11,
        tokens_used=2**40,
        changes_sha256="cd" * 32,
        changes_bytes=123,
        sandbox_id="box",
        cancel_requested_at=START + timedelta(microseconds=1),
        starting_at=START,
        registered_at=START,
        deadline_at=START + timedelta(days=400),
        finished_at=START,
    )
    await jobs.add(job)
    assert await jobs.get(job.id) == job


async def test_a_job_with_defaults_comes_back_as_it_was_stored(jobs: JobStore):
    await jobs.add(make_job())
    assert await jobs.get(JobId("job-1")) == make_job()


@pytest.mark.parametrize("text", ["a\x00b", "\ud800", "\x1a0000", "\U0001f600", ""])
async def test_text_that_sql_refuses_survives(jobs: JobStore, text: str):
    job = make_job(reason=text, message=text, result=[text, {text: 1}], spec=JobSpec(title=text, task=text))
    await jobs.add(job)
    assert await jobs.get(job.id) == job


@pytest.mark.parametrize("job_id", ["", "nobody", "a\x00b", "\ud800", "' OR 1=1 --"])
async def test_an_unknown_id_is_no_job(jobs: JobStore, job_id: str):
    await jobs.add(make_job())
    assert await jobs.get(JobId(job_id)) is None
    assert await jobs.update(JobId(job_id), lambda job: job) is None
    assert await jobs.delete(JobId(job_id)) is False


async def test_an_id_is_stored_once(jobs: JobStore):
    await jobs.add(make_job(reason="first"))
    with pytest.raises(AlreadyExists):
        await jobs.add(make_job(reason="second"))
    assert await jobs.get(JobId("job-1")) == make_job(reason="first")


async def test_the_list_is_newest_first_and_bounded(jobs: JobStore):
    for number in (2, 1, 4, 3):
        await jobs.add(make_job(f"job-{number}", created_at=START + timedelta(seconds=number // 2)))
    assert [job.id for job in await jobs.list()] == ["job-4", "job-3", "job-2", "job-1"]
    assert [job.id for job in await jobs.list(limit=2)] == ["job-4", "job-3"]


async def test_the_list_is_filtered_by_state_and_network(jobs: JobStore):
    await jobs.add(make_job("a", state=JobState.RUNNING))
    await jobs.add(make_job("b", state=JobState.FAILED))
    await jobs.add(make_job("c", state=JobState.RUNNING, spec=JobSpec(title="t", task="t", network="other")))
    assert {job.id for job in await jobs.list(states=[JobState.RUNNING])} == {"a", "c"}
    assert {job.id for job in await jobs.list(states=[JobState.RUNNING], network="local")} == {"a"}
    assert {job.id for job in await jobs.list(states={JobState.RUNNING, JobState.FAILED})} == {"a", "b", "c"}
    assert await jobs.list(states=[]) == []


async def test_an_update_stores_what_the_change_answers(jobs: JobStore):
    await jobs.add(make_job())
    changed = await jobs.update(JobId("job-1"), lambda job: job.moved(JobState.STARTING, attempt=1))
    assert changed == make_job(state=JobState.STARTING, attempt=1)
    assert await jobs.get(JobId("job-1")) == changed


async def test_a_declined_update_changes_nothing(jobs: JobStore):
    await jobs.add(make_job())
    assert await jobs.update(JobId("job-1"), lambda job: None) is None
    assert await jobs.get(JobId("job-1")) == make_job()


async def test_an_update_that_raises_changes_nothing_and_lets_the_next_one_in(jobs: JobStore):
    await jobs.add(make_job())
    with pytest.raises(IllegalTransition):
        await jobs.update(JobId("job-1"), lambda job: job.moved(JobState.COMPLETED))
    assert await jobs.get(JobId("job-1")) == make_job()
    assert await jobs.update(JobId("job-1"), lambda job: job.moved(JobState.STARTING)) is not None


def one_more(job: Job) -> Job:
    return replace(job, iterations=job.iterations + 1)


async def test_of_fifty_updates_at_once_none_is_lost(jobs: JobStore):
    await jobs.add(make_job())
    async with anyio.create_task_group() as group:
        for _ in range(50):
            group.start_soon(jobs.update, JobId("job-1"), one_more)
    job = await jobs.get(JobId("job-1"))
    assert job is not None
    assert job.iterations == 50


async def test_updates_through_two_connections_pools_lose_nothing(jobs: JobStore, database_url: str):
    await jobs.add(make_job())
    other = await Database.open(database_url)
    async with anyio.create_task_group() as group:
        for store in (jobs, SqlJobStore(other)):
            for _ in range(25):
                group.start_soon(store.update, JobId("job-1"), one_more)
    await other.close()
    job = await jobs.get(JobId("job-1"))
    assert job is not None
    assert job.iterations == 50


async def test_of_two_that_move_a_job_one_succeeds(jobs: JobStore, database_url: str):
    await jobs.add(make_job())
    other = await Database.open(database_url)
    moved: list[Job | None] = []

    def start(job: Job) -> Job | None:
        return job.moved(JobState.STARTING) if job.state is JobState.QUEUED else None

    async def move(store: JobStore) -> None:
        moved.append(await store.update(JobId("job-1"), start))

    async with anyio.create_task_group() as group:
        for store in (jobs, SqlJobStore(other)) * 5:
            group.start_soon(move, store)
    await other.close()
    assert len([job for job in moved if job is not None]) == 1

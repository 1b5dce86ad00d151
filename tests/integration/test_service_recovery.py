"""PD-50: a job's changes outlive its worker; over an engine in memory, compared by real git."""

from __future__ import annotations

import asyncio
import io
import tarfile
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from container.engine.errors import EngineUnavailable, SandboxNotFound
from container.engine.sandbox import WorkerStart
from orchestrator.domain.jobs import Job
from orchestrator.services.recovery import MODULE
from orchestrator.services.sealed_programs import command_of
from tests.fakes.comparing import compares
from tests.fakes.engine import FakeEngine, FakeSandbox
from tests.support.deadline import eventually
from tests.support.orchestrator import Wired, WorkerHands, wired
from tests.support.waiting import until

COMMAND = command_of(WorkerStart(""), MODULE)
RECOVERED = "; its changes were recovered"
KILLED = "killed (SIGKILL), not by its memory limit"


@pytest.fixture
async def orchestrator(home: Path) -> AsyncIterator[Wired]:
    async with wired(home, engine=FakeEngine(programs={COMMAND: compares})) as running:
        yield running


def tar_of(**files: str) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    return packed.getvalue()


async def at_work(orchestrator: Wired, **asked: Any) -> WorkerHands:
    """A worker that has begun, and has changed one of two files."""
    uploaded = await orchestrator.operator.put("/api/v1/workspaces", content=tar_of(kept="k\n", edited="a\n"))
    worker = await orchestrator.worker(workspace_sha256=uploaded.json()["sha256"], **asked)
    assert (await worker.post("status", {"state": "running", "iteration": 0})).status_code == 204
    orchestrator.engine.sandbox(orchestrator.sandbox(worker.job_id)).files |= {
        "/workspace/kept": b"k\n",
        "/workspace/edited": b"b\n",
    }
    return worker


async def diff(orchestrator: Wired, job_id: str) -> str:
    answer = await orchestrator.operator.get(f"/api/v1/jobs/{job_id}/diff")
    assert answer.status_code == 200, answer.text
    return answer.text


async def has_the_edit(orchestrator: Wired, job_id: str) -> bool:
    text = await diff(orchestrator, job_id)
    return "-a\n+b\n" in text and text.count("diff --git") == 1


async def test_a_killed_worker_s_changes_are_recovered_and_its_container_goes(orchestrator: Wired) -> None:
    worker = await at_work(orchestrator)
    orchestrator.engine.exit(orchestrator.sandbox(worker.job_id), 137)
    job = await orchestrator.ended(worker.job_id)
    assert (job.state, job.reason) == ("failed", KILLED + RECOVERED)
    assert await has_the_edit(orchestrator, worker.job_id)
    await until(lambda: _told(orchestrator, worker.job_id))
    assert (await orchestrator.events(worker.job_id, "status"))[-1]["message"] == job.reason
    await eventually(lambda: not orchestrator.engine.names)
    assert not list((orchestrator.settings.cache_dir / "recovery").iterdir())


async def test_a_cancelled_job_whose_worker_does_not_answer_keeps_its_changes(orchestrator: Wired) -> None:
    worker = await at_work(orchestrator)
    orchestrator.engine.ignore_sigterm(orchestrator.sandbox(worker.job_id))
    await orchestrator.operator.post(f"/api/v1/jobs/{worker.job_id}/cancel")
    job = await orchestrator.ended(worker.job_id)
    assert (job.state, job.reason) == ("cancelled", "cancelled by the operator" + RECOVERED)
    assert await has_the_edit(orchestrator, worker.job_id)


async def test_a_job_over_its_deadline_is_stopped_before_its_changes_are_taken(orchestrator: Wired) -> None:
    worker = await at_work(orchestrator, timeout_s=30)
    name = orchestrator.sandbox(worker.job_id)
    orchestrator.engine.ignore_sigterm(name)

    def long_ago(job: Job) -> Job:
        assert job.deadline_at is not None
        return replace(job, deadline_at=job.deadline_at - timedelta(seconds=60))

    await orchestrator.stores.jobs.update((await orchestrator.job(worker.job_id)).id, long_ago)
    job = await orchestrator.ended(worker.job_id)
    assert (job.state, job.reason) == ("timed_out", "ran longer than 30 s" + RECOVERED)
    assert await has_the_edit(orchestrator, worker.job_id)


async def test_what_the_worker_uploaded_itself_stands(orchestrator: Wired) -> None:
    worker = await at_work(orchestrator)
    await worker.upload_changes(b"its own patch")
    orchestrator.engine.exit(orchestrator.sandbox(worker.job_id), 137)
    assert (await orchestrator.ended(worker.job_id)).reason == KILLED
    assert await diff(orchestrator, worker.job_id) == "its own patch"


async def test_a_worker_that_had_not_begun_has_changed_nothing(orchestrator: Wired) -> None:
    """Half unpacked, its workspace would look as if the rest had been deleted."""
    uploaded = await orchestrator.operator.put("/api/v1/workspaces", content=tar_of(kept="k\n"))
    worker = await orchestrator.worker(workspace_sha256=uploaded.json()["sha256"])
    assert (await worker.post("status", {"state": "starting", "iteration": 0})).status_code == 204
    orchestrator.engine.exit(orchestrator.sandbox(worker.job_id), 137)
    job = await orchestrator.ended(worker.job_id)
    assert (job.reason, job.changes_sha256) == (KILLED, None)


async def test_a_workspace_without_a_change_says_nothing_of_changes(orchestrator: Wired) -> None:
    worker = await at_work(orchestrator)
    files = orchestrator.engine.sandbox(orchestrator.sandbox(worker.job_id)).files
    files["/workspace/edited"] = b"a\n"
    orchestrator.engine.exit(orchestrator.sandbox(worker.job_id), 137)
    assert (await orchestrator.ended(worker.job_id)).reason == KILLED
    assert await diff(orchestrator, worker.job_id) == ""


@pytest.mark.parametrize("call", ["collect", "launch", "inspect", "logs"])
async def test_an_engine_that_is_silent_for_a_moment_loses_nothing(orchestrator: Wired, call: str) -> None:
    worker = await at_work(orchestrator)
    for _ in range(2):
        orchestrator.engine.fail_next(call, EngineUnavailable("no answer in time"))
    orchestrator.engine.exit(orchestrator.sandbox(worker.job_id), 137)
    job = await orchestrator.ended(worker.job_id)
    assert job.reason == KILLED + RECOVERED
    assert await has_the_edit(orchestrator, worker.job_id)
    await eventually(lambda: not orchestrator.engine.names)


@pytest.mark.parametrize("broken", ["comparison", "collection"])
async def test_changes_that_can_not_be_recovered_stay_in_their_container(home: Path, broken: str) -> None:
    """The job ends and says why; its container goes when the job is forgotten."""

    async def fails(sandbox: FakeSandbox) -> int:
        sandbox.write("noise\ngit update-index failed (128): disk\n")
        return 1

    engine = FakeEngine(programs={COMMAND: fails})
    async with wired(home, engine=engine) as orchestrator:
        worker = await at_work(orchestrator)
        if broken == "collection":
            engine.fail_next("collect", SandboxNotFound("/workspace is not there"))
        engine.exit(orchestrator.sandbox(worker.job_id), 137)
        job = await orchestrator.ended(worker.job_id)
        cause = {
            "comparison": "worker.recovery failed: git update-index failed (128): disk",
            "collection": "/workspace is not there",
        }[broken]
        name = orchestrator.sandbox(worker.job_id)
        assert job.reason == (
            f"{KILLED}; its changes could not be recovered: {cause}. They stay in the container {name}, under"
            f" /workspace, until you type: portside jobs rm {worker.job_id}"
        )
        assert job.changes_sha256 is None
        await eventually(lambda: engine.names == {name})
    directory = engine.sandbox(name).spec.socket_dir
    assert directory is not None
    dead = directory.with_name("dead")
    dead.mkdir()
    async with wired(home, engine=engine) as orchestrator:
        await eventually(lambda: not dead.exists())
        assert engine.names == {name}
        assert directory.is_dir()  # without it an engine can't open the container
        answer = await orchestrator.operator.delete(f"/api/v1/jobs/{worker.job_id}")
        assert answer.status_code == 204
        await eventually(lambda: not engine.names)


async def test_an_orchestrator_that_ends_while_it_compares_is_followed_by_one_that_does(home: Path) -> None:
    """One patch, one end, and nothing of the first attempt stays."""
    comparing = asyncio.Event()

    async def hangs(_sandbox: FakeSandbox) -> int:
        comparing.set()
        await asyncio.Event().wait()
        return 0

    engine = FakeEngine(programs={COMMAND: hangs})
    async with wired(home, engine=engine) as first:
        worker = await at_work(first)
        engine.exit(first.sandbox(worker.job_id), 137)
        await eventually(comparing.is_set)
        for task in asyncio.all_tasks():  # what a kill leaves: nothing is tidied up
            if "_guarded" in repr(task.get_coro()):
                engine.fail_next("remove", EngineUnavailable("killed"))
                task.cancel()
        assert not (await first.job(worker.job_id)).state.terminal
    assert len(engine.names) == 2
    engine.programs[COMMAND] = compares
    async with wired(home, engine=engine) as second:
        job = await second.ended(worker.job_id)
        assert job.reason == KILLED + RECOVERED
        assert await has_the_edit(second, worker.job_id)
        await until(lambda: _told(second, worker.job_id))
        await eventually(lambda: not engine.names)


async def _told(orchestrator: Wired, job_id: str) -> bool:
    """The end is in the timeline, once."""
    states = [one["state"] for one in await orchestrator.events(job_id, "status")]
    assert states.count("failed") <= 1
    return "failed" in states

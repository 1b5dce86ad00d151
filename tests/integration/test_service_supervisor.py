"""PD-8: jobs and sandboxes kept in step, over an engine in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from container.engine.errors import EngineUnavailable, ImageMissing, LaunchFailed
from container.engine.sandbox import SandboxRef, SandboxSpec, SandboxStatus
from orchestrator.adapters.sockets.unix import UnixJobSockets
from orchestrator.domain.jobs import Job
from orchestrator.domain.network.identities import InstanceId, NetworkName
from tests.fakes.engine import FakeEngine, FakeSandbox
from tests.support.deadline import eventually, within
from tests.support.orchestrator import Wired, WorkerHands, http_over, problem, wired
from worker.clock import SystemClock

WORKER = ("python", "-P", "-m", "worker")


async def cancel(orchestrator: Wired, job_id: str) -> None:
    answer = await orchestrator.operator.post(f"/api/v1/jobs/{job_id}/cancel")
    assert answer.status_code == 202, answer.text


async def nothing_left(orchestrator: Wired, within_s: float = 10.0) -> None:
    """No sandbox, no socket, no token file."""
    await eventually(lambda: not orchestrator.engine.names, within_s)
    roots = {spec.socket_dir.parent for spec in orchestrator.engine.launched if spec.socket_dir}
    await eventually(lambda: not any(list(root.glob("*")) for root in roots if root.exists()), within_s)


async def last_reason(orchestrator: Wired, job_id: str) -> str:
    return (await orchestrator.events(job_id, "status"))[-1]["message"]


def foreign(engine: FakeEngine, name: str, instance: str) -> Callable[[], Awaitable[object]]:
    labels = {"io.portside.instance": instance, "io.portside.job": "j", "io.portside.attempt": "1"}
    spec = SandboxSpec(name=name, image="i", command=("x",), labels=labels, socket_dir=None, deadline_s=900)
    return lambda: engine.launch(spec)


async def test_a_job_runs_and_leaves_nothing_behind(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    spec = orchestrator.engine.launched[0]
    assert spec.env == {"PORTSIDE_JOB_ID": worker.job_id, "PORTSIDE_ATTEMPT": "1"}
    assert worker.token not in str(spec)
    await worker.finish(message="done")
    orchestrator.engine.exit(orchestrator.sandbox(worker.job_id))
    await nothing_left(orchestrator)
    assert (await orchestrator.job(worker.job_id)).state == "completed"


async def test_a_job_says_first_which_limits_its_engine_does_not_enforce(orchestrator: Wired) -> None:
    """BR-106: found out beside the job, and not when its disk has filled the host's."""
    worker = await orchestrator.worker()
    said = [event["message"] for event in await orchestrator.events(worker.job_id, "status")]
    assert said[1] == "attempt 1; disk_bytes is not enforced: nothing is limited here"


async def test_a_deleted_job_takes_its_rows_with_it(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    await worker.execute("count", key="1:a")
    path = f"/api/v1/jobs/{worker.job_id}"
    early = await orchestrator.operator.delete(path)
    assert (early.status_code, problem(early)["code"]) == (409, "conflict")
    await worker.finish()
    assert (await orchestrator.operator.delete(path)).status_code == 204
    assert (await orchestrator.operator.get(path)).status_code == 404
    assert await orchestrator.stores.audit.read(job_id=worker.job_id) == []
    await nothing_left(orchestrator)  # its sandbox too: nobody knows its job any more


async def test_a_restarted_orchestrator_adopts_what_runs_and_touches_nothing_else(home: Path) -> None:
    """BR-098: three jobs go on; another product's and another instance's sandboxes stay."""
    engine = FakeEngine()
    async with wired(home, engine=engine) as first:
        workers = [await first.worker() for _ in range(3)]
        engine.launched.clear()
    await foreign(engine, "another-product", "")()
    await foreign(engine, "portside-other-1", "another-instance")()
    engine.exit(f"portside-{workers[2].job_id}-1", 1)  # while nobody looks
    async with wired(home, engine=engine) as second:
        lost = await second.ended(workers[2].job_id)
        assert (lost.state, lost.reason) == ("failed", "worker exited with code 1 without a report")
        for worker in workers[:2]:
            async with http_over(socket=worker.socket, token=worker.token) as http:
                again = WorkerHands(http, worker.job_id, worker.token, worker.socket)
                assert (await again.get("job")).status_code == 200
                await again.finish()
                engine.exit(second.sandbox(worker.job_id))
            assert (await second.job(worker.job_id)).state == "completed"
        await eventually(lambda: engine.names == {"another-product", "portside-other-1"})
        await eventually(lambda: not list(workers[0].socket.parent.parent.glob("*")))
    assert [spec.name for spec in engine.launched] == ["another-product", "portside-other-1"]


async def test_an_adopted_worker_gets_its_whole_time_to_register(home: Path) -> None:
    """BR-098: what passed while nobody listened is not its fault."""
    engine = FakeEngine()
    async with wired(home, engine=engine, register_timeout_s=1.0) as first:
        worker = await first.worker(register=False)
        started = (await first.job(worker.job_id)).starting_at
        assert started is not None
        await first.stores.jobs.update(
            (await first.job(worker.job_id)).id, lambda job: _started(job, started - timedelta(hours=1))
        )
        await first.running.close()
    async with wired(home, engine=engine, register_timeout_s=30.0) as second:
        async with http_over(socket=worker.socket, token=worker.token) as http:
            again = WorkerHands(http, worker.job_id, worker.token, worker.socket)
            assert (await again.get("job")).status_code == 200
        assert (await second.job(worker.job_id)).state == "running"


def _started(job: Job, at: datetime) -> Job:
    return replace(job, starting_at=at)


async def test_a_launch_that_died_between_create_and_start_is_finished_by_the_next_run(home: Path) -> None:
    """BR-109: found by its label, though nobody wrote its id down."""
    engine = FakeEngine()
    engine.launch_gate.clear()
    async with wired(home, engine=engine) as first:
        job_id = await first.new_job()
        await eventually(lambda: first.sandbox(job_id) in engine.names)
    engine.launch_gate.set()
    async with wired(home, engine=engine) as second:
        worker = await second.worker(job_id)
        assert (await second.job(job_id)).state == "running"
        assert len(engine.launched) == 1
        await worker.finish()


async def test_a_cancelled_job_whose_launch_died_halfway_leaves_no_sandbox(home: Path) -> None:
    """BR-109: created, never started, and nobody wants it any more."""
    engine = FakeEngine()
    engine.launch_gate.clear()
    async with wired(home, engine=engine) as first:
        job_id = await first.new_job()
        await eventually(lambda: first.sandbox(job_id) in engine.names)
        await cancel(first, job_id)
    assert engine.sandbox(f"portside-{job_id}-1").status.state == "created"
    async with wired(home, engine=engine) as second:
        assert (await second.ended(job_id)).state == "cancelled"
        await nothing_left(second)


async def test_a_queued_job_is_cancelled_at_once(home: Path) -> None:
    """BR-109: queued."""
    async with wired(home, max_running_jobs=1) as orchestrator:
        first = await orchestrator.launched()
        waiting = await orchestrator.new_job()
        await cancel(orchestrator, waiting)
        job = await orchestrator.job(waiting)
        assert (job.state, job.reason) == ("cancelled", "cancelled by the operator")
        assert orchestrator.engine.names == {orchestrator.sandbox(first)}
        await cancel(orchestrator, waiting)  # again is harmless
        await orchestrator.worker(first)


class SlowImage(FakeEngine):
    """Its `prepare` waits for a gate, as a pull does."""

    def __init__(self) -> None:
        super().__init__()
        self.pulled = asyncio.Event()
        self.pulling = asyncio.Event()

    async def prepare(self, image: str) -> str:
        self.pulling.set()
        await self.pulled.wait()
        return await super().prepare(image)


async def test_a_cancellation_does_not_wait_for_the_image(home: Path) -> None:
    """BR-109: image pull."""
    engine = SlowImage()
    async with wired(home, engine=engine) as orchestrator:
        job_id = await orchestrator.new_job()
        await within(5.0, engine.pulling.wait())
        await cancel(orchestrator, job_id)
        assert (await orchestrator.ended(job_id, within_s=5.0)).state == "cancelled"
        engine.pulled.set()
        await nothing_left(orchestrator)
    assert not engine.launched


async def test_the_time_to_register_begins_when_the_container_does(home: Path) -> None:
    """BR-114: a slow pull is no silent worker."""
    engine = SlowImage()
    async with wired(home, engine=engine, register_timeout_s=1.0) as orchestrator:
        job_id = await orchestrator.new_job()
        await within(5.0, engine.pulling.wait())
        begun = (await orchestrator.job(job_id)).starting_at
        assert begun is not None
        await eventually(lambda: SystemClock().now() - begun > timedelta(seconds=1.2))
        engine.pulled.set()
        worker = await orchestrator.worker(job_id)
        await worker.finish()


class SlowList(SlowImage):
    """Its answer to `list` was true when it was asked, and comes when `hold` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.hold = asyncio.Event()
        self.hold.set()
        self.asked = asyncio.Event()

    async def list(self, labels: Mapping[str, str]) -> list[SandboxStatus]:
        seen = await super().list(labels)
        self.asked.set()
        await self.hold.wait()
        return seen


class LeavesAtTheEnd(FakeEngine):
    """Its sandbox ends after a closing orchestrator has seen it run."""

    def __init__(self) -> None:
        super().__init__()
        self.closing = asyncio.Event()

    async def list(self, labels: Mapping[str, str]) -> list[SandboxStatus]:
        seen = await super().list(labels)
        if self.closing.is_set():
            for status in seen:
                self.exit(status.ref.name)
        return seen


async def test_a_worker_that_has_reported_is_waited_for_and_taken_away_at_the_end(home: Path) -> None:
    """BR-098: a command that ends with its job leaves no sandbox for the next one."""
    engine = LeavesAtTheEnd()
    async with wired(home, engine=engine, stop_grace_s=5.0) as orchestrator:
        worker = await orchestrator.worker()
        await worker.finish()
        closing = asyncio.ensure_future(orchestrator.running.close())
        await eventually(lambda: not orchestrator.settings.api_socket.exists())
        engine.closing.set()
        await within(10.0, closing)
        assert engine.names == set()
        assert not worker.socket.parent.exists()


async def test_a_launch_that_ends_during_a_look_is_no_lost_container(home: Path) -> None:
    """BR-113: what was half seen is looked at again, not judged."""
    engine = SlowList()
    async with wired(home, engine=engine) as orchestrator:
        job_id = await orchestrator.new_job()
        await within(5.0, engine.pulling.wait())  # its launch is under way, nothing is created
        engine.hold.clear()
        engine.asked.clear()
        await within(5.0, engine.asked.wait())
        engine.pulled.set()
        await orchestrator.until(job_id, lambda job: job.sandbox_id is not None)
        engine.hold.set()
        worker = await orchestrator.worker(job_id)
        await worker.finish()


async def test_a_cancellation_between_create_and_start_stops_what_then_starts(orchestrator: Wired) -> None:
    """BR-109: between create and start."""
    engine = orchestrator.engine
    engine.launch_gate.clear()
    job_id = await orchestrator.new_job()
    await eventually(lambda: orchestrator.sandbox(job_id) in engine.names)
    await cancel(orchestrator, job_id)
    assert (await orchestrator.job(job_id)).state == "cancelling"
    engine.launch_gate.set()
    assert (await orchestrator.ended(job_id)).state == "cancelled"
    await nothing_left(orchestrator)


async def test_a_worker_that_comes_after_the_cancellation_is_refused(orchestrator: Wired) -> None:
    """BR-109: started, not registered; the late registration is 409 and no result is taken later."""
    worker = await orchestrator.worker(register=False)
    orchestrator.engine.fail_next("stop", EngineUnavailable("not now"))
    await cancel(orchestrator, worker.job_id)
    late = await worker.get("job")
    assert (late.status_code, problem(late)["code"]) == (409, "job_not_active")
    assert (await orchestrator.ended(worker.job_id)).state == "cancelled"
    await nothing_left(orchestrator)


async def test_a_running_job_is_cancelling_until_its_container_is_gone(orchestrator: Wired) -> None:
    """BR-109: registered, the first model call under way. BR-108: cancelled means that nothing runs."""
    worker = await orchestrator.worker()
    orchestrator.model.gate.clear()
    asked = asyncio.create_task(worker.post("llm/complete", {"messages": []}))
    await eventually(lambda: orchestrator.model.requests)
    seen: list[str] = []
    stop = orchestrator.engine.stop

    async def watched(ref: SandboxRef, grace_s: float) -> None:
        seen.append((await orchestrator.job(worker.job_id)).state)
        await stop(ref, grace_s)

    orchestrator.engine.stop = watched
    await cancel(orchestrator, worker.job_id)
    job = await orchestrator.ended(worker.job_id)
    assert (job.state, job.reason) == ("cancelled", "cancelled by the operator")
    assert seen == ["cancelling"]
    orchestrator.model.gate.set()
    await asyncio.gather(asked, return_exceptions=True)
    await nothing_left(orchestrator)


async def test_a_worker_is_told_of_the_cancellation_and_its_changes_are_kept(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    orchestrator.engine.fail_next("stop", EngineUnavailable("not now"))
    await cancel(orchestrator, worker.job_id)
    (told,) = (await worker.get("prompt")).json()["deliveries"]
    assert (told["kind"], told["text"]) == ("cancel", "cancelled by the operator")
    await worker.upload_changes(b"half a patch")
    assert (await worker.complete("cancelled", reason="SIGTERM", iterations=2)).status_code == 200
    job = await orchestrator.ended(worker.job_id)
    assert (job.state, job.reason, job.iterations) == ("cancelled", "cancelled by the operator", 2)
    diff = await orchestrator.operator.get(f"/api/v1/jobs/{worker.job_id}/diff")
    assert diff.content == b"half a patch"


async def test_twenty_jobs_are_cancelled_together(orchestrator: Wired) -> None:
    """BR-108 (c): their stops run side by side; SIGTERM is ignored by all."""
    jobs = [await orchestrator.launched() for _ in range(20)]
    for job_id in jobs:
        orchestrator.engine.ignore_sigterm(orchestrator.sandbox(job_id))
    stopping, most, stop, all_stop = 0, 0, orchestrator.engine.stop, asyncio.Event()

    async def together(ref: SandboxRef, grace_s: float) -> None:
        nonlocal stopping, most
        stopping += 1
        most = max(most, stopping)
        if stopping == 20:
            all_stop.set()
        await within(10.0, all_stop.wait())
        await stop(ref, grace_s)
        stopping -= 1

    orchestrator.engine.stop = together
    await asyncio.gather(*(cancel(orchestrator, job_id) for job_id in jobs))
    for job_id in jobs:
        assert (await orchestrator.ended(job_id, 20.0)).state == "cancelled"
    assert most == 20
    await nothing_left(orchestrator)


@pytest.mark.parametrize("registered", [True, False])
async def test_a_container_that_vanishes_is_named(orchestrator: Wired, registered: bool) -> None:
    """BR-113 (a): also when the event is lost."""
    worker = await orchestrator.worker(register=registered)
    orchestrator.engine.vanish(orchestrator.sandbox(worker.job_id), silently=True)
    job = await orchestrator.ended(worker.job_id)
    assert (job.state, job.reason) == ("lost", "container disappeared")
    await nothing_left(orchestrator)


async def test_a_paused_container_is_not_taken_for_ended(orchestrator: Wired) -> None:
    """BR-113 (b)."""
    worker = await orchestrator.worker()
    orchestrator.engine.pause(orchestrator.sandbox(worker.job_id))
    await orchestrator.launched()  # the supervisor has looked since
    assert (await orchestrator.job(worker.job_id)).state == "running"
    orchestrator.engine.unpause(orchestrator.sandbox(worker.job_id))
    await worker.finish()
    assert (await orchestrator.job(worker.job_id)).state == "completed"


async def test_a_worker_that_never_registers_is_named_with_its_last_words(home: Path) -> None:
    """BR-114: bounded, the container removed, and good jobs start beside it."""

    async def silent(sandbox: FakeSandbox) -> int:
        sandbox.write("x" * 200_000 + "\nModuleNotFoundError: worker\n")
        await asyncio.Event().wait()
        return 0

    engine = FakeEngine(programs={WORKER: silent})
    async with wired(home, engine=engine, register_timeout_s=0.5) as orchestrator:
        bad = [await orchestrator.new_job() for _ in range(4)]
        good = await orchestrator.worker()
        for job_id in bad:
            job = await orchestrator.ended(job_id)
            assert (job.state, job.reason) == ("failed", "worker did not register within 0.5 s")
            (words,) = [one["text"] for one in await orchestrator.events(job_id, "log")]
            assert words.endswith("ModuleNotFoundError: worker\n")
            assert len(words) < 5_000
        await eventually(lambda: engine.names == {orchestrator.sandbox(good.job_id)})
        await good.finish()


@pytest.mark.parametrize(
    ("code", "oom", "state", "reason"),
    [
        (137, True, "failed", "out of memory (limit 128 MiB)"),
        (137, False, "failed", "killed (SIGKILL), not by its memory limit"),
        (143, False, "lost", "container was terminated from outside (engine restarted?)"),
        (1, False, "failed", "worker exited with code 1 without a report"),
        (0, False, "failed", "worker exited with code 0 without a report"),
    ],
)
async def test_an_end_without_a_report_is_named(
    orchestrator: Wired, code: int, oom: bool, state: str, reason: str
) -> None:
    """BR-105 (a) and (c), BR-103 (d); the last output is kept and nothing is restarted."""
    worker = await orchestrator.worker(memory_bytes=128 * 2**20)
    name = orchestrator.sandbox(worker.job_id)
    orchestrator.engine.sandbox(name).write("last words")
    orchestrator.engine.exit(name, code, oom=oom)
    job = await orchestrator.ended(worker.job_id)
    assert (job.state, job.reason) == (state, reason)
    assert "last words" in str(await orchestrator.events(worker.job_id, "log"))
    await nothing_left(orchestrator)
    assert len(orchestrator.engine.launched) == 1


async def test_a_child_that_ran_out_of_memory_ends_no_job(orchestrator: Wired) -> None:
    """BR-105 (b): the flag without the exit is the tool's news, not the job's."""
    worker = await orchestrator.worker()
    name = orchestrator.sandbox(worker.job_id)
    orchestrator.engine.oom_child(name)
    await orchestrator.launched()
    assert (await orchestrator.job(worker.job_id)).state == "running"
    orchestrator.engine.exit(name, 1)
    assert (await orchestrator.ended(worker.job_id)).reason == "worker exited with code 1 without a report"


async def test_a_job_over_its_deadline_is_stopped_though_its_worker_says_nothing(orchestrator: Wired) -> None:
    worker = await orchestrator.worker(timeout_s=30)

    def long_ago(job: Job) -> Job:
        assert job.deadline_at is not None
        return replace(job, deadline_at=job.deadline_at - timedelta(minutes=5))

    await orchestrator.stores.jobs.update((await orchestrator.job(worker.job_id)).id, long_ago)
    job = await orchestrator.ended(worker.job_id)
    assert (job.state, job.reason) == ("timed_out", "ran longer than 30 s")
    await nothing_left(orchestrator)


async def test_an_engine_that_is_down_fails_new_jobs_soon_and_spares_running_ones(
    orchestrator: Wired,
) -> None:
    """BR-103: the reason is the engine's; afterwards new jobs work without a restart."""
    worker = await orchestrator.worker()
    orchestrator.engine.go_down("nobody answers on /var/run/docker.sock")
    waiting = await orchestrator.new_job()
    job = await orchestrator.ended(waiting, within_s=8.0)
    assert (job.state, job.reason) == ("failed", "nobody answers on /var/run/docker.sock")
    assert (await worker.get("job")).status_code == 200
    orchestrator.engine.come_back()
    again = await orchestrator.worker()
    for one in (worker, again):
        await one.finish()
        assert (await orchestrator.job(one.job_id)).state == "completed"


async def test_one_silent_moment_of_the_engine_fails_no_queued_job(home: Path) -> None:
    """BR-103: a hiccup is no outage."""
    async with wired(home, max_running_jobs=1) as orchestrator:
        first = await orchestrator.worker()
        waiting = await orchestrator.new_job()
        orchestrator.engine.fail_next("list", EngineUnavailable("no answer in time"))
        await cancel(orchestrator, first.job_id)
        second = await orchestrator.worker(waiting)
        await second.finish()


async def test_an_engine_that_is_down_at_the_start_may_come_later(home: Path) -> None:
    """BR-103: the service starts, says so, and works once the engine does."""
    engine = FakeEngine()
    engine.go_down("no such socket")
    async with wired(home, engine=engine) as orchestrator:
        async with asyncio.timeout(5.0):
            while (await orchestrator.operator.get("/ready")).status_code != 503:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        engine.come_back()
        worker = await orchestrator.worker()
        assert (await orchestrator.operator.get("/ready")).status_code == 200
        await worker.finish()


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("prepare", ImageMissing("the image x is not on this engine. Build it: portside image build")),
        ("launch", LaunchFailed("no space left on device")),
        ("launch", EngineUnavailable("the engine does not answer")),
        ("prepare", OSError(28, "No space left on device")),
        ("launch", RuntimeError("a bug")),
    ],
)
async def test_a_launch_that_fails_is_tried_once_and_ends_the_job(
    orchestrator: Wired, call: str, error: Exception
) -> None:
    """BR-114: the job ends with the cause; BR-113: what comes after starts normally."""
    orchestrator.engine.fail_next(call, error)
    job_id = await orchestrator.new_job()
    job = await orchestrator.ended(job_id, within_s=5.0)
    assert job.state == "failed"
    expected = {"RuntimeError": "something broke inside", "OSError": "No space left"}
    assert expected.get(type(error).__name__, str(error)) in job.reason
    assert not orchestrator.engine.launched
    worker = await orchestrator.worker()
    await worker.finish()


async def test_a_removal_that_fails_is_tried_again(orchestrator: Wired) -> None:
    """BR-113 (c), (d): logged and retried, and new jobs start meanwhile."""
    worker = await orchestrator.worker()
    for _ in range(2):
        orchestrator.engine.fail_next("remove", EngineUnavailable("volume is in use"))
    await worker.finish()
    orchestrator.engine.exit(orchestrator.sandbox(worker.job_id))
    other = await orchestrator.worker()
    await other.finish()
    orchestrator.engine.exit(orchestrator.sandbox(other.job_id))
    await nothing_left(orchestrator)


async def test_no_more_jobs_run_than_allowed_and_the_oldest_comes_first(home: Path) -> None:
    async with wired(home, max_running_jobs=2) as orchestrator:
        jobs = [await orchestrator.new_job() for _ in range(5)]
        for job_id in jobs:
            worker = await orchestrator.worker(job_id)
            live = [one for one in jobs if (await orchestrator.job(one)).state.active]
            assert len(live) <= 2
            await worker.finish()
            orchestrator.engine.exit(orchestrator.sandbox(job_id))
        started = [spec.env["PORTSIDE_JOB_ID"] for spec in orchestrator.engine.launched]
        assert started == jobs


async def test_thirty_jobs_start_at_once(home: Path) -> None:
    """BR-102: no ports, nothing to collide on."""
    async with wired(home, max_running_jobs=30) as orchestrator:
        jobs = await asyncio.gather(*(orchestrator.new_job() for _ in range(30)))
        workers = [await orchestrator.worker(job_id) for job_id in jobs]
        assert len({worker.socket for worker in workers}) == 30
        assert len(orchestrator.engine.launched) == 30


async def test_the_supervisor_outlives_a_broken_look(
    orchestrator: Wired, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = asyncio.Event()

    async def bug(_labels: object) -> list[object]:
        broken.set()
        raise RuntimeError("a bug")

    monkeypatch.setattr(orchestrator.engine, "list", bug)
    job_id = await orchestrator.new_job()
    await within(5.0, broken.wait())
    monkeypatch.undo()
    await (await orchestrator.worker(job_id)).finish()


async def test_sockets_of_jobs_that_ended_while_nobody_looked_are_removed(tmp_path: Path) -> None:
    """BR-098: temp directories of dead jobs are gone as well."""
    root = tmp_path / "s"
    for job_id in ("aaaaaaaaaaaa", "bbbbbbbbbbbb"):
        (root / job_id).mkdir(parents=True)
        (root / job_id / "token").write_text("t")
    await UnixJobSockets(root, mark="job").remove_others(["x-aaaaaaaaaaaa"])
    assert [one.name for one in root.iterdir()] == ["aaaaaaaaaaaa"]


async def test_an_ended_job_s_instance_has_left_its_network(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    instance_id = InstanceId((await orchestrator.job(worker.job_id)).instance_id)

    async def state() -> str:
        network = NetworkName("local")
        instance = await orchestrator.stores.network.read(
            network, lambda reader: reader.instance(instance_id)
        )
        assert instance is not None
        return instance.state

    assert await state() == "active"
    orchestrator.engine.vanish(orchestrator.sandbox(worker.job_id))
    await orchestrator.ended(worker.job_id)
    async with asyncio.timeout(5.0):
        while await state() == "active":  # noqa: ASYNC110
            await asyncio.sleep(0.01)

"""`complete`: one report a job, the first one stands."""

from __future__ import annotations

import pytest

from tests.fakes.engine import FakeEngine
from tests.support.orchestrator import Wired, problem


async def test_a_hosted_job_completes_only_after_its_changes(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    early = await worker.complete()
    assert (early.status_code, problem(early)["code"]) == (409, "changes_missing")
    assert (await orchestrator.job(worker.job_id)).state == "running"
    await worker.upload_changes()
    answer = await worker.complete(message="did it", iterations=4, result={"n": 1})
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
    job = await orchestrator.job(worker.job_id)
    assert (job.state, job.message, job.iterations, job.reason) == ("completed", "did it", 4, "")


@pytest.mark.parametrize(
    ("outcome", "reason", "state", "shown"),
    [
        ("completed", None, "completed", ""),
        ("failed", "the tests still fail", "failed", "the tests still fail"),
        ("failed", None, "failed", "failed"),
        ("cancelled", "SIGTERM", "cancelled", "SIGTERM"),
        ("limit", "deadline: 60 s", "timed_out", "limit reached: deadline: 60 s"),
        ("limit", "200 iterations", "failed", "limit reached: 200 iterations"),
    ],
)
async def test_an_outcome_becomes_the_job_s_state(
    orchestrator: Wired, outcome: str, reason: str | None, state: str, shown: str
) -> None:
    worker = await orchestrator.worker()
    await worker.finish(outcome, reason=reason)
    job = await orchestrator.job(worker.job_id)
    assert (job.state, job.reason) == (state, shown)


@pytest.mark.parametrize(("success", "state"), [(True, "completed"), (False, "failed")])
async def test_the_older_success_flag_is_taken(orchestrator: Wired, success: bool, state: str) -> None:
    worker = await orchestrator.worker()
    await worker.upload_changes()
    assert (await worker.post("complete", {"success": success, "iterations": 1})).status_code == 200
    assert (await orchestrator.job(worker.job_id)).state == state


async def test_the_same_report_again_is_fine_and_another_is_refused(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    report = {"outcome": "failed", "reason": "a", "message": "m", "iterations": 2, "result": [1]}
    await worker.upload_changes()
    for _ in range(3):
        assert (await worker.post("complete", report)).status_code == 200
    for changed in (
        {"outcome": "completed"},
        {"reason": "b"},
        {"message": "n"},
        {"iterations": 3},
        {"result": []},
    ):
        answer = await worker.post("complete", report | changed)
        assert (answer.status_code, problem(answer)["code"]) == (409, "conflict"), changed
    job = await orchestrator.job(worker.job_id)
    assert (job.state, job.reason, job.message) == ("failed", "a", "m")


async def test_a_report_before_the_job_began_is_refused(orchestrator: Wired) -> None:
    worker = await orchestrator.worker(register=False)
    await worker.upload_changes()
    answer = await worker.complete()
    assert (answer.status_code, problem(answer)["code"]) == (409, "conflict")
    assert (await orchestrator.job(worker.job_id)).state == "starting"


async def test_the_late_report_of_a_job_that_ended_otherwise_is_refused(orchestrator: Wired) -> None:
    """BR-109: no result is accepted after the job has ended."""
    worker = await orchestrator.worker()
    await worker.upload_changes()
    orchestrator.engine.vanish(orchestrator.sandbox(worker.job_id))
    await orchestrator.ended(worker.job_id)
    token = {"Authorization": f"Bearer {worker.token}"}
    path = f"/worker/{worker.job_id}/complete"
    answer = await orchestrator.operator.post(path, json={"outcome": "completed"}, headers=token)
    assert (answer.status_code, problem(answer)["code"]) == (409, "job_not_active")
    assert (await orchestrator.job(worker.job_id)).state == "lost"


async def test_a_result_that_arrives_while_the_container_is_stopped_counts(orchestrator: Wired) -> None:
    worker = await orchestrator.worker()
    await worker.upload_changes()
    engine: FakeEngine = orchestrator.engine
    engine.fail_next("stop", _slow())
    await orchestrator.operator.post(f"/api/v1/jobs/{worker.job_id}/cancel")
    assert (await worker.complete("completed", message="just in time")).status_code == 200
    job = await orchestrator.ended(worker.job_id)
    assert (job.state, job.message) == ("completed", "just in time")


def _slow() -> Exception:
    from container.engine.errors import EngineUnavailable

    return EngineUnavailable("not now")

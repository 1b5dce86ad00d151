"""HW-3, PD-8: jobs without a container: run, cancelled, and ended with the orchestrator that ran them."""

from __future__ import annotations

from pathlib import Path

from orchestrator.domain.jobs import JobMode, JobSpec
from orchestrator.ports.models import ModelError
from tests.fakes.model import calls
from tests.support.deadline import eventually
from tests.support.jobs import make_job
from tests.support.orchestrator import MODEL, Wired, wired

CALL = calls(("1", "count", "{}"))


async def test_a_job_runs_its_tools_and_reports(orchestrator: Wired) -> None:
    orchestrator.model.then(CALL)
    job = await orchestrator.ended(await orchestrator.new_job(mode="in-process"))
    assert (job.state, job.message) == ("completed", "done")
    (context,) = orchestrator.tools["count"].contexts
    assert (context.job_id, context.call_id) == (job.id, "1:1")
    assert not orchestrator.engine.launched


async def test_a_cancelled_job_ends_its_running_call(orchestrator: Wired) -> None:
    """BR-109: the call under way is ended with the job."""
    orchestrator.model.then(calls(("1", "held", "{}")))
    job_id = await orchestrator.new_job(mode="in-process")
    await eventually(orchestrator.tools.entered.is_set)
    await orchestrator.operator.post(f"/api/v1/jobs/{job_id}/cancel")
    job = await orchestrator.ended(job_id)
    assert (job.state, job.reason) == ("cancelled", "cancelled by the operator")
    await eventually(lambda: orchestrator.tools["held"].cancelled == 1)


async def test_a_job_whose_model_fails_says_why(orchestrator: Wired) -> None:
    """BR-137: the provider's own words."""
    orchestrator.model.then(ModelError("the key was refused", fatal=True))
    job = await orchestrator.ended(await orchestrator.new_job(mode="in-process"))
    assert job.state == "failed"
    assert "the key was refused" in job.reason


async def test_a_job_ends_as_lost_with_the_orchestrator_that_ran_it(home: Path) -> None:
    """BR-098: it has no container to be adopted."""
    async with wired(home) as first:
        first.model.gate.clear()
        job_id = await first.new_job(mode="in-process")
        await eventually(lambda: first.model.requests)
    async with wired(home) as second:
        job = await second.job(job_id)
        assert (job.state, job.reason) == ("lost", "the orchestrator that ran it was stopped")


async def test_a_queued_job_of_an_earlier_run_is_run_by_the_next(home: Path) -> None:
    spec = JobSpec("t", "t", mode=JobMode.IN_PROCESS, model=MODEL)
    async with wired(home) as first:
        await first.running.close()
        await first.stores.jobs.add(make_job("from-before", spec=spec))
    async with wired(home) as second:
        assert (await second.ended("from-before")).state == "completed"

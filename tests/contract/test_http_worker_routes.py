"""Every worker route: what it answers, and what it refuses."""

from __future__ import annotations

from tests.support.orchestrator import Wired, problem


async def test_a_worker_gets_its_job(orchestrator: Wired) -> None:
    worker = await orchestrator.worker(title="T", task="do this", max_iterations=7)
    body = (await worker.get("job")).json()
    assert body["job_id"] == worker.job_id

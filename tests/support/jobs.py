"""Jobs to store."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from orchestrator.domain.jobs import Job, JobId, JobSpec, JobState

START = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def make_job(job_id: str = "job-1", **changes: Any) -> Job:
    """A queued job."""
    given: dict[str, Any] = {
        "id": JobId(job_id),
        "spec": JobSpec(title="Fix it", task="Fix the bug."),
        "state": JobState.QUEUED,
        "created_at": START,
        "instance_id": "instance-1",
    }
    return Job(**(given | changes))

"""Jobs in memory, for those who make them: a test ends them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from orchestrator.domain.jobs import Job, JobId, JobSpec, JobState
from orchestrator.errors import BadRequest, EgressUnavailable
from orchestrator.ports.errors import AlreadyExists
from tests.support.networks import START


class FakeJobs:
    """`JobMaker`.

    Attributes:
        refuses: what every new job is refused with, as a `refusal`; "" accepts.
    """

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.refuses = ""
        self.refusal: type[BadRequest | EgressUnavailable] = BadRequest

    async def list(self, *, states: Collection[JobState] | None = None, limit: int = 100) -> list[Job]:
        """Jobs in these states."""
        return [one for one in self.jobs.values() if states is None or one.state in states][:limit]

    async def find(self, job_id: str) -> Job | None:
        """One job; None when there is none."""
        return self.jobs.get(job_id)

    async def create(self, spec: JobSpec, *, job_id: str | None = None) -> Job:
        """Accept a job."""
        if self.refuses:
            raise self.refusal(self.refuses)
        name = job_id or f"job-{len(self.jobs)}"
        if name in self.jobs:
            raise AlreadyExists("job")
        self.jobs[name] = Job(JobId(name), spec, JobState.QUEUED, START, f"i-{name}")
        return self.jobs[name]

    def end(self, job_id: str, state: JobState, reason: str = "") -> None:
        """It has ended."""
        self.jobs[job_id] = replace(self.jobs[job_id], state=state, reason=reason)

"""The jobs whose workers may call, kept close for the hot route."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.domain.jobs import Job, JobId
from orchestrator.ports.jobs import JobStore
from tool_registry.clock import Clock

_MAX_AGE_S = 1.0
_MAX_JOBS = 4096


@dataclass(slots=True)
class _Cached:
    job: Job
    at: float


class ActiveJobs:
    """A cache of jobs in front of the store; never older than a second, dropped at every change here."""

    def __init__(self, store: JobStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._cache: dict[str, _Cached] = {}

    async def get(self, job_id: str) -> Job | None:
        """The job as it stands now, give or take a second; None when there is none."""
        now = self._clock.monotonic()
        cached = self._cache.get(job_id)
        if cached is not None and now - cached.at < _MAX_AGE_S:
            return cached.job
        job = await self._store.get(JobId(job_id))
        if job is None:
            self._cache.pop(job_id, None)
            return None
        self.put(job)
        return job

    def put(self, job: Job) -> None:
        """Remember a job that was just read or written."""
        if len(self._cache) >= _MAX_JOBS:
            self._cache.clear()
        self._cache[job.id] = _Cached(job, self._clock.monotonic())

    def drop(self, job_id: str) -> None:
        """Forget a job."""
        self._cache.pop(job_id, None)


def may_call(job: Job, attempt: int) -> bool:
    """Whether the worker of this attempt still has a say."""
    return job.attempt == attempt and job.state.active

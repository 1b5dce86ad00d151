"""Where jobs are kept."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

from orchestrator.domain.jobs import Job, JobId, JobState


class JobStore(Protocol):
    """Jobs, durable. Every method is one transaction.

    Raises:
        StoreUnavailable: from any method, when the database does not answer.
    """

    async def add(self, job: Job) -> None:
        """Store a new job.

        Raises:
            AlreadyExists: a job of this id is there.
        """
        ...

    async def get(self, job_id: JobId) -> Job | None:
        """The job, or None."""
        ...

    async def list(
        self,
        *,
        states: Collection[JobState] | None = None,
        network: str | None = None,
        limit: int = 100,
    ) -> list[Job]:
        """Jobs, newest first."""
        ...

    async def update(self, job_id: JobId, change: Callable[[Job], Job | None]) -> Job | None:
        """Read, change and write one job under a lock.

        `change` is pure and may run more than once; None means "leave it".

        Returns:
            The stored job after the change; None when there is no such job or `change` declined.
        """
        ...

    async def delete(self, job_id: JobId) -> bool:
        """Remove a job with its events, executions, audit rows and deliveries."""
        ...

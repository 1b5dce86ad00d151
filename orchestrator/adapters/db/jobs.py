"""`JobStore` over SQL."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.rows import columns_of, row_of
from orchestrator.adapters.db.tables import audit, jobs
from orchestrator.domain.jobs import Job, JobId, JobMode, JobSpec, JobState

_COLUMNS = columns_of(jobs, Job)


class SqlJobStore:
    """Jobs, one row each."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, job: Job) -> None:
        """Store a new job.

        Raises:
            AlreadyExists: a job of this id is there.
        """
        await self._database.write(lambda connection: connection.execute(insert(jobs).values(_row(job))))

    async def get(self, job_id: JobId) -> Job | None:
        """The job, or None."""

        def work(connection: Connection) -> Job | None:
            row = connection.execute(select(*_COLUMNS).where(jobs.c.id == job_id)).one_or_none()
            return None if row is None else _job(row)

        return await self._database.read(work)

    async def list(
        self,
        *,
        states: Collection[JobState] | None = None,
        network: str | None = None,
        limit: int = 100,
    ) -> list[Job]:
        """Jobs, newest first."""
        query = select(*_COLUMNS).order_by(jobs.c.created_at.desc(), jobs.c.id.desc()).limit(limit)
        if states is not None:
            query = query.where(jobs.c.state.in_([state.value for state in states]))
        if network is not None:
            query = query.where(jobs.c.network == network)
        return await self._database.read(lambda connection: [_job(row) for row in connection.execute(query)])

    async def update(self, job_id: JobId, change: Callable[[Job], Job | None]) -> Job | None:
        """Read, change and write one job under a lock; what `change` raises leaves the job as it was.

        Returns:
            The stored job after the change; None when there is no such job or `change` declined.
        """

        def work(connection: Connection) -> Job | None:
            # FOR NO KEY UPDATE: events and executions of this job may be inserted meanwhile.
            query = select(*_COLUMNS).where(jobs.c.id == job_id).with_for_update(key_share=True)
            row = connection.execute(query).one_or_none()
            changed = None if row is None else change(_job(row))
            if changed is not None:
                connection.execute(update(jobs).where(jobs.c.id == job_id).values(_row(changed)))
            return changed

        return await self._database.write(work)

    async def delete(self, job_id: JobId) -> bool:
        """Remove a job with its events, executions, artifacts, audit rows and deliveries."""

        def work(connection: Connection) -> bool:
            # The tables that refer to a job follow it by ON DELETE CASCADE.
            gone = connection.execute(delete(jobs).where(jobs.c.id == job_id)).rowcount == 1
            connection.execute(delete(audit).where(audit.c.job_id == job_id))
            return gone

        return await self._database.write(work)


def _row(job: Job) -> dict[str, Any]:
    return row_of(job) | {
        "state": job.state.value,
        "network": job.spec.network,
        "spec": row_of(job.spec)
        | {
            "mode": job.spec.mode.value,
            "grants": sorted(job.spec.grants),
            "allow_hosts": list(job.spec.allow_hosts),
            "secrets": dict(job.spec.secrets),
        },
    }


def _job(row: Row[Any]) -> Job:
    stored = Job(*row)
    return replace(stored, state=JobState(stored.state), spec=_spec(row.spec))


def _spec(stored: dict[str, Any]) -> JobSpec:
    stored["mode"] = JobMode(stored["mode"])
    stored["grants"] = frozenset[str](stored["grants"])
    stored["allow_hosts"] = tuple[str, ...](stored.get("allow_hosts", ()))  # not in a job from before
    return JobSpec(**stored)

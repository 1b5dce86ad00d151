"""`EventStore` over SQL."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from sqlalchemy import Connection, func, insert, select

from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.rows import columns_of, row_of
from orchestrator.adapters.db.tables import job_events, jobs
from orchestrator.domain.jobs import JobId
from orchestrator.ports.errors import OwnerMissing
from orchestrator.ports.events import NewEvent, StoredEvent

_COLUMNS = columns_of(job_events, StoredEvent)
_LAST = 2**63 - 1


class SqlEventStore:
    """Timelines, one row an event.

    The job's row is the lock: appends to one job take turns, so positions have no gap and commit in order.
    A reader that asks for events after the last position it saw misses none.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(self, job_id: JobId, events: Sequence[NewEvent]) -> list[StoredEvent]:
        """Store events in order; those whose (source, seq) is known are left out.

        Returns:
            The events that were new, with their positions.

        Raises:
            OwnerMissing: there is no such job.
        """

        def work(connection: Connection) -> list[StoredEvent]:
            _lock(connection, job_id)
            fresh = _fresh(events, _known(connection, job_id, events))
            last = connection.scalar(
                select(func.coalesce(func.max(job_events.c.position), 0)).where(job_events.c.job_id == job_id)
            )
            stored = [
                StoredEvent(position, event.source, event.type, event.at, event.data)
                for position, event in enumerate(fresh, start=(last or 0) + 1)
            ]
            if stored:
                connection.execute(
                    insert(job_events),
                    [
                        row_of(event) | {"job_id": job_id, "seq": new.seq}
                        for event, new in zip(stored, fresh, strict=True)
                    ],
                )
            return stored

        return await self._database.write(work) if events else []

    async def read(self, job_id: JobId, *, after: int = 0, limit: int = 500) -> list[StoredEvent]:
        """Events with a position over `after`, oldest first."""
        query = (
            select(*_COLUMNS)
            .where(job_events.c.job_id == job_id, job_events.c.position > min(after, _LAST))
            .order_by(job_events.c.position)
            .limit(limit)
        )
        return await self._database.read(
            lambda connection: [StoredEvent(*row) for row in connection.execute(query)]
        )


def _lock(connection: Connection, job_id: JobId) -> None:
    query = select(jobs.c.id).where(jobs.c.id == job_id).with_for_update(key_share=True)
    if connection.execute(query).one_or_none() is None:
        raise OwnerMissing(f"there is no job {job_id}")


def _known(connection: Connection, job_id: JobId, events: Sequence[NewEvent]) -> set[tuple[str, int]]:
    wanted: defaultdict[str, list[int]] = defaultdict(list)
    for event in events:
        if event.seq is not None:
            wanted[event.source].append(event.seq)
    known: set[tuple[str, int]] = set()
    for source, numbers in wanted.items():
        query = select(job_events.c.seq).where(
            job_events.c.job_id == job_id,
            job_events.c.source == source,
            job_events.c.seq.between(min(numbers), max(numbers)),
        )
        known.update((source, seq) for seq in connection.scalars(query))
    return known


def _fresh(events: Sequence[NewEvent], known: set[tuple[str, int]]) -> list[NewEvent]:
    """Events that are neither stored nor earlier in the same call."""
    fresh: list[NewEvent] = []
    for event in events:
        if event.seq is not None:
            if (event.source, event.seq) in known:
                continue
            known.add((event.source, event.seq))
        fresh.append(event)
    return fresh

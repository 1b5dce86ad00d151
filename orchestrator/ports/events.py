"""Where a job's timeline is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from orchestrator.domain.jobs import JobId


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to store.

    Attributes:
        source: `worker:<attempt>` or `orchestrator`.
        seq: the source's own number; (job, source, seq) is stored once. None lets the store count.
        data: a JSON object.
    """

    source: str
    seq: int | None
    type: str
    at: datetime
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event of a timeline; `position` grows by one within a job, from 1."""

    position: int
    source: str
    type: str
    at: datetime
    data: dict[str, Any]


class EventStore(Protocol):
    """Timelines, durable and append-only."""

    async def append(self, job_id: JobId, events: Sequence[NewEvent]) -> list[StoredEvent]:
        """Store events in order; those whose (source, seq) is known are left out.

        Returns:
            The events that were new, with their positions.
        """
        ...

    async def read(self, job_id: JobId, *, after: int = 0, limit: int = 500) -> list[StoredEvent]:
        """Events with a position over `after`, oldest first."""
        ...

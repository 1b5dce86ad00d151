"""Things that wait for a job's worker: operator prompts and network messages as text."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from orchestrator.domain.jobs import JobId


@dataclass(frozen=True, slots=True)
class PendingDelivery:
    """One thing for a job; handed out again until it is acknowledged.

    Attributes:
        kind: `prompt`, `message`, `task_offer` or `cancel`.
    """

    id: str
    job_id: JobId
    kind: str
    text: str
    created_at: datetime
    thread_id: str | None = None
    task_id: str | None = None


class DeliveryStore(Protocol):
    """Deliveries, durable, in order per job."""

    async def add(self, delivery: PendingDelivery) -> None:
        """Store one; the same id again changes nothing."""
        ...

    async def pending(self, job_id: JobId, *, limit: int = 50) -> list[PendingDelivery]:
        """Not acknowledged yet, oldest first."""
        ...

    async def acknowledge(self, job_id: JobId, delivery_ids: Collection[str]) -> None:
        """These were received; unknown ids are ignored."""
        ...

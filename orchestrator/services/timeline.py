"""A job's timeline: stored first, then handed to whoever watches."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from typing import Any

from orchestrator.domain.jobs import JobId
from orchestrator.ports.events import EventStore, NewEvent, StoredEvent
from tool_registry.clock import Clock
from tool_registry.redaction import Redactor

ORCHESTRATOR = "orchestrator"
_PAGE = 500


class Timeline:
    """Appends events and lets any number of watchers follow them."""

    def __init__(self, store: EventStore, clock: Clock, redactor: Redactor) -> None:
        self._store = store
        self._clock = clock
        self._redactor = redactor
        self._changed: defaultdict[JobId, asyncio.Event] = defaultdict(asyncio.Event)
        self._closed = False

    def close(self) -> None:
        """Let every watcher go: nothing changes any more."""
        self._closed = True
        for job_id in list(self._changed):
            self.wake(job_id)

    @property
    def closed(self) -> bool:
        """Whether waiting makes no sense any more."""
        return self._closed

    async def append(self, job_id: JobId, events: Sequence[NewEvent]) -> list[StoredEvent]:
        """Store events, known secrets taken out, and wake the watchers.

        Returns:
            Those that were new.
        """
        clean = [
            NewEvent(one.source, one.seq, one.type, one.at, self._redactor.value(one.data)) for one in events
        ]
        stored = await self._store.append(job_id, clean)
        if stored:
            self.wake(job_id)
        return stored

    async def note(self, job_id: JobId, kind: str, **data: Any) -> None:
        """Store one event of the orchestrator's own."""
        await self.append(job_id, [NewEvent(ORCHESTRATOR, None, kind, self._clock.now(), data)])

    def wake(self, job_id: JobId) -> None:
        """Let the watchers of a job look again."""
        event = self._changed.pop(job_id, None)
        if event is not None:
            event.set()

    async def read(self, job_id: JobId, *, after: int = 0, limit: int = _PAGE) -> list[StoredEvent]:
        """Events with a position over `after`, oldest first."""
        return await self._store.read(job_id, after=after, limit=limit)

    async def changes(self, job_id: JobId, wait_s: float) -> bool:
        """Wait until something changes; False when nothing did in time."""
        if self._closed:
            return False
        try:
            async with asyncio.timeout(wait_s):
                await self._changed[job_id].wait()
        except TimeoutError:
            return False
        return True

    async def follow(
        self, job_id: JobId, *, after: int = 0, idle_s: float = 15.0
    ) -> AsyncIterator[list[StoredEvent]]:
        """Events as they come, in pages; an empty page after `idle_s` without one."""
        while True:
            waiter = asyncio.ensure_future(self.changes(job_id, idle_s))
            try:
                page = await self.read(job_id, after=after)
                if not page:
                    await waiter
                    page = await self.read(job_id, after=after)
            finally:
                waiter.cancel()
            if page:
                after = page[-1].position
            yield page
            if self._closed:
                return

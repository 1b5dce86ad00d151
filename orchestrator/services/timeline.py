"""A job's timeline: stored first, then handed to whoever watches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any
from weakref import WeakValueDictionary

from orchestrator.domain.jobs import JobId
from orchestrator.ports.events import EventStore, NewEvent, StoredEvent
from tool_registry.clock import Clock
from tool_registry.redaction import Redactor

ORCHESTRATOR = "orchestrator"
_PAGE = 500


class Timeline:
    """Appends events and wakes any number of watchers."""

    def __init__(self, store: EventStore, clock: Clock, redactor: Redactor) -> None:
        self._store = store
        self._clock = clock
        self._redactor = redactor
        self._changed: WeakValueDictionary[JobId, asyncio.Event] = WeakValueDictionary()
        self._closed = False

    def close(self) -> None:
        """Let every watcher go: nothing changes any more."""
        self._closed = True
        self.wake_all()

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

    def wake_all(self) -> None:
        """Let every watcher look again: the network has something for some of them."""
        for job_id in list(self._changed):
            self.wake(job_id)

    def wake(self, job_id: JobId) -> None:
        """Let the watchers of a job look again."""
        event = self._changed.pop(job_id, None)
        if event is not None:
            event.set()

    async def read(self, job_id: JobId, *, after: int = 0, limit: int = _PAGE) -> list[StoredEvent]:
        """Events with a position over `after`, oldest first."""
        return await self._store.read(job_id, after=after, limit=limit)

    async def all(self, job_id: JobId) -> AsyncIterator[StoredEvent]:
        """Every event there is, oldest first."""
        after = 0
        while page := await self.read(job_id, after=after):
            for event in page:
                yield event
            after = page[-1].position

    def watch(self, job_id: JobId) -> Watch:
        """Notices every change from now on: take it before you look, wait for it after."""
        event = self._changed.get(job_id)
        if event is None:
            event = self._changed[job_id] = asyncio.Event()
        return Watch(self, event)


class Watch:
    """One change of a job's timeline or deliveries, still to come."""

    def __init__(self, timeline: Timeline, event: asyncio.Event) -> None:
        self._timeline = timeline
        self._event = event

    async def changed(self, wait_s: float) -> bool:
        """Wait until something changes; False when nothing did in time, or nothing will any more."""
        if self._timeline.closed:
            return False
        try:
            async with asyncio.timeout(wait_s):
                await self._event.wait()
        except TimeoutError:
            return False
        return True

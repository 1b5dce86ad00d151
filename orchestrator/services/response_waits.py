"""Who waits in this process for a response, and how they are woken."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

from orchestrator.domain.network.identities import InstanceId, ThreadId

MOST_WAITS = 1_000
MOST_WAITS_OF_ONE = 64


class ResponseWaits:
    """Waits by thread. What is waited for lies in the store: a wake that is lost costs time and nothing else.

    Args:
        most: waits at once.
        most_of_one: waits at once of one instance.
    """

    def __init__(self, *, most: int = MOST_WAITS, most_of_one: int = MOST_WAITS_OF_ONE) -> None:
        self._most = most
        self._most_of_one = most_of_one
        self._waits: dict[ThreadId, list[asyncio.Event]] = {}
        self._of_instance: Counter[InstanceId] = Counter()

    @contextmanager
    def waiting(self, thread_id: ThreadId, instance_id: InstanceId) -> Generator[asyncio.Event | None]:
        """An event that is set when somebody replied in the thread; None when too many wait already."""
        if self._of_instance.total() >= self._most or self._of_instance[instance_id] >= self._most_of_one:
            yield None
            return
        event = asyncio.Event()
        self._waits.setdefault(thread_id, []).append(event)
        self._of_instance[instance_id] += 1
        try:
            yield event
        finally:
            self._of_instance[instance_id] -= 1
            if not self._of_instance[instance_id]:
                del self._of_instance[instance_id]
            self._waits[thread_id].remove(event)
            if not self._waits[thread_id]:
                del self._waits[thread_id]

    def has(self, thread_id: ThreadId) -> bool:
        """Whether somebody waits for a reply in the thread."""
        return thread_id in self._waits

    def wake(self, thread_id: ThreadId) -> None:
        """There is a reply in the thread."""
        for event in self._waits.get(thread_id, ()):
            event.set()

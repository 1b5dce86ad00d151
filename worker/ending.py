"""A job's work held to its deadline, and ended from outside."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from tool_registry.clock import Clock
from worker.limits import deadline_reason
from worker.protocol.job import JobDescription, JobOutcome

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Stop:
    """Why work was ended from outside."""

    outcome: JobOutcome
    reason: str


@dataclass(frozen=True, slots=True)
class LoopEnd:
    """How a loop ended.

    Attributes:
        reason: why, when the outcome is not `completed`.
        message: the model's own last word: the summary, or the final text.
        result: what a program may read of it; any JSON.
    """

    outcome: JobOutcome
    reason: str | None = None
    message: str | None = None
    iterations: int = 0
    result: Any = None


class BoundedWork:
    """Runs a job's work until it ends, the deadline passes, or somebody stops it."""

    def __init__(self, job: JobDescription, clock: Clock) -> None:
        self._job = job
        self._clock = clock
        self._stop: Stop | None = None
        self._task: asyncio.Task[Any] | None = None

    def stop(self, outcome: JobOutcome, reason: str) -> None:
        """End the work, or keep it from beginning; the first reason counts."""
        if self._stop is None:
            self._stop = Stop(outcome, reason)
            if self._task is not None:
                self._task.cancel()

    async def run(self, work: Coroutine[Any, Any, T]) -> T | Stop:
        """What the work came to, or why it was ended; it has stopped by then.

        Raises:
            Exception: whatever the work raises.
        """
        task = self._task = asyncio.create_task(work)
        if self._stop is not None:
            task.cancel()
        left_s = (self._job.limits.deadline_at - self._clock.now()).total_seconds()
        try:
            done, _ = await asyncio.wait({task}, timeout=max(left_s, 0.0))
            if not done:
                self.stop("limit", deadline_reason(self._job.limits))
                await asyncio.wait({task})
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task})
            raise
        if self._stop is not None and task.cancelled():
            return self._stop
        return task.result()

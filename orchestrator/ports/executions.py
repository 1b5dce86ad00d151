"""Where tool calls are remembered so that each runs once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from orchestrator.domain.jobs import JobId


class ExecutionState(StrEnum):
    """Where a remembered call stands."""

    RUNNING = "running"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class Execution:
    """One remembered call.

    Attributes:
        key: the worker's idempotency key, unique within the job.
        fingerprint: sha256 of tool name and canonical params; another one under a key is a conflict.
        runner: the orchestrator process that runs it; a running call of a dead runner has an unknown fate.
        answer: the stored answer as JSON (`{"output": ...}` or `{"problem": ...}`), once finished.
    """

    job_id: JobId
    key: str
    fingerprint: str
    tool_name: str
    runner: str
    state: ExecutionState
    started_at: datetime
    answer: dict[str, Any] | None = None


class ExecutionStore(Protocol):
    """Remembered tool calls, durable."""

    async def begin(self, execution: Execution) -> Execution | None:
        """Record that a call is about to run.

        Returns:
            None when this call was recorded now; else the one that stands under its key.
        """
        ...

    async def finish(self, job_id: JobId, key: str, answer: dict[str, Any]) -> None:
        """Store the answer."""
        ...

    async def release(self, job_id: JobId, key: str) -> None:
        """Forget a call that did not run after all."""
        ...

    async def get(self, job_id: JobId, key: str) -> Execution | None:
        """The call under a key."""
        ...

"""Where a loop has to stop, and how much it has used."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from worker.protocol.job import JobLimits
from worker.protocol.llm import Usage


@dataclass(slots=True)
class Spent:
    """What a job has used so far."""

    iterations: int = 0
    tokens: int = 0

    def add(self, usage: Usage) -> None:
        """Count one answer."""
        self.tokens += usage.input_tokens + usage.output_tokens


def reached(limits: JobLimits, spent: Spent, now: datetime) -> str | None:
    """Which limit was reached, as the reason the job's user reads; None is none."""
    if now >= limits.deadline_at:
        return deadline_reason(limits)
    if spent.iterations >= limits.max_iterations:
        return f"the limit of {limits.max_iterations} iterations was reached"
    if limits.max_tokens is not None and spent.tokens >= limits.max_tokens:
        return f"the limit of {limits.max_tokens:,} tokens was reached ({spent.tokens:,} used)"
    return None


def deadline_reason(limits: JobLimits) -> str:
    """The reason of a job that ran out of time; by its first word the orchestrator knows it."""
    return f"deadline passed: {limits.deadline_at.isoformat(timespec='seconds')}"

"""Who calls a tool, and under which bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


def _no_progress(_progress: float, _total: float | None, _message: str | None) -> None:
    """Nobody listens."""


@dataclass(slots=True)  # frozen, its many fields would take longer to set than a call to check
class ToolContext:
    """What a tool may know about its caller. It is never taken from the arguments, nor changed.

    Attributes:
        job_id: the calling job.
        call_id: unique within the job; the same for a repeated request.
        agent: the acting agent's stable name.
        instance_id: the acting instance; one job or one external session.
        network: the agent network that the caller belongs to.
        surface: `worker`, `agent` or `representative`; decides which tools can be reached at all.
        grants: names of approval-gated tools that this job may use.
        coerce_safe: text where no text may stand is read as the JSON value that it spells, and recorded.
        deadline: on the executor's monotonic clock, in seconds; None is none but the tool's own.
        progress: called as `(progress, total, message)`; extends no deadline.
    """

    job_id: str
    call_id: str
    agent: str = ""
    instance_id: str = ""
    network: str = ""
    surface: str = "worker"
    grants: frozenset[str] = frozenset()
    deadline: float | None = None
    progress: Callable[[float, float | None, str | None], None] = _no_progress
    coerce_safe: bool = False

    def until(self, deadline: float) -> ToolContext:
        """The same caller, under this deadline."""
        return ToolContext(
            self.job_id,
            self.call_id,
            self.agent,
            self.instance_id,
            self.network,
            self.surface,
            self.grants,
            deadline,
            self.progress,
            self.coerce_safe,
        )

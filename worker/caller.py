"""A job as the caller of tools."""

from __future__ import annotations

from tool_registry.context import ToolContext
from worker.protocol.job import JobDescription


def caller_of(job: JobDescription) -> ToolContext:
    """Who calls; each call has a copy with its own id."""
    agent = job.agent
    return ToolContext(
        job.job_id,
        "",
        agent.name,
        agent.instance_id,
        agent.network,
        coerce_safe=job.coerce == "safe",
    )

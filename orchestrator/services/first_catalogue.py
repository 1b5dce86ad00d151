"""A job's first look at the tools waits for MCP servers that are about to have some."""

from __future__ import annotations

from orchestrator.domain.jobs import Job
from orchestrator.ports.tool_sources import McpControl
from orchestrator.services.timeline import Timeline
from tool_registry.near_names import closest
from tool_registry.registry import ToolRegistry


class FirstCatalogue:
    """Holds a job's first catalogue until every MCP server has answered or failed, within a bound.

    The bound counts from each server's own start, so a slow server costs only the jobs that begin while it
    does. Hosted and in-process jobs are the same here: both ask for their catalogue before their first model
    request, and a container starts while the servers do.

    Source: the first tool-capable request carries every schema; a slow server never delays the service.
    """

    def __init__(self, mcp: McpControl, registry: ToolRegistry, timeline: Timeline, *, wait_s: float) -> None:
        self._mcp = mcp
        self._registry = registry
        self._timeline = timeline
        self._wait_s = wait_s

    async def ready(self, job: Job) -> None:
        """Wait; the job's timeline names the servers that it goes on without, and grants of no tool."""
        late = await self._mcp.settled(self._wait_s)
        if late:
            names = ", ".join(late)
            text = f"going on without the MCP servers {names}: no answer yet; their tools come when they do"
            await self._warn(job, text)
        names = [entry.name for entry in self._registry.entries()]
        for grant in sorted(job.spec.grants.difference(names)):
            like = closest(grant, names)
            hint = f"did you mean {like!r}?" if like else "see: portside tools list"
            await self._warn(
                job, f"no tool is called {grant!r}, which this job was granted ({hint}); it may still come"
            )

    async def _warn(self, job: Job, text: str) -> None:
        await self._timeline.note(job.id, "log", level="warning", text=text)

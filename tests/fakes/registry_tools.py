"""Tools of any source, and what surrounds their calls, for tests of the registry."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from tests.fakes.clock import SteppingClock
from tool_registry.audit import AuditRecord
from tool_registry.context import ToolContext
from tool_registry.definition import ToolDefinition
from tool_registry.execution import Surroundings, ToolExecutor
from tool_registry.output import ToolOutput
from tool_registry.registry import Entry, ToolRegistry
from tool_registry.tool import ToolSource, ToolTraits

OPEN: dict[str, Any] = {"type": "object"}
Act = Callable[[dict[str, Any], ToolContext], Awaitable[Any]]


async def _echo(params: dict[str, Any], _context: ToolContext) -> Any:
    return params


class RegistryTool:
    """A tool over a function of its arguments; it remembers every call that reached it."""

    def __init__(
        self,
        name: str = "tool",
        act: Act = _echo,
        *,
        schema: Mapping[str, Any] | str = OPEN,
        description: str = "does what it is told",
        source: ToolSource = ToolSource.MCP,
        owner: str = "server",
        **traits: Any,
    ) -> None:
        text = schema if isinstance(schema, str) else json.dumps(schema, separators=(",", ":"))
        self.definition = ToolDefinition(name, description, text)
        self.traits = ToolTraits(source, owner, **traits)
        self._act = act
        self.calls: list[dict[str, Any]] = []
        self.contexts: list[ToolContext] = []

    async def execute(self, params: dict[str, Any], context: ToolContext) -> ToolOutput:
        self.calls.append(params)
        self.contexts.append(context)
        result = await self._act(params, context)
        return result if isinstance(result, ToolOutput) else ToolOutput(result)


class ArtifactShelf:
    """An `OutputKeeper` in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    async def keep(self, context: ToolContext, data: bytes, media_type: str) -> str:
        name = f"{context.job_id}-{len(self.kept)}-{media_type.partition(';')[0]}"
        self.kept[name] = data
        return name


class CallStand:
    """A registry with an executor, and everything that it reported."""

    def __init__(self, *tools: RegistryTool, context: ToolContext | None = None, **around: Any) -> None:
        self.clock = SteppingClock()
        self.registry = ToolRegistry()
        for tool in tools:
            self.registry.register(tool)
        self.audit: list[AuditRecord] = []
        self.stuck: list[Entry] = []
        self.context = context or ToolContext("job-1", "call-1", agent="coder", network="local")
        self.executor = ToolExecutor(
            self.registry,
            Surroundings(self.clock, audit=self.audit.append, on_stuck=self.stuck.append, **around),
        )

    async def call(
        self, name: str = "tool", /, *, using: ToolContext | None = None, **params: Any
    ) -> ToolOutput:
        return await self.executor.execute(name, params, using or self.context)

    def granting(self, *names: str) -> ToolContext:
        """The stand's context with these tools granted to its job."""
        return replace(self.context, grants=frozenset(names))

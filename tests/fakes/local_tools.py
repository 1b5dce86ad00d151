"""Local tools that do what a test says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from tool_registry.context import ToolContext
from tool_registry.definition import ToolDefinition
from tool_registry.output import ToolOutput
from tool_registry.tool import Tool, ToolDomain, ToolSource, ToolTraits

_OPEN: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": True}


class LocalTool:
    """A container-local tool over a function of its arguments."""

    def __init__(
        self,
        name: str,
        act: Callable[[dict[str, Any]], Awaitable[Any]],
        *,
        parameters: dict[str, Any] | None = None,
        read_only: bool = False,
        timeout_s: float = 60.0,
    ) -> None:
        self.definition = ToolDefinition.of(name, f"the {name} tool", parameters or _OPEN)
        self.traits = ToolTraits(
            ToolSource.LOCAL,
            owner="worker",
            domain=ToolDomain.CONTAINER,
            rate_limit=None,
            read_only=read_only,
            timeout_s=timeout_s,
        )
        self._act = act
        self.contexts: list[ToolContext] = []

    async def execute(self, params: dict[str, Any], context: ToolContext) -> ToolOutput:
        self.contexts.append(context)
        result = await self._act(params)
        return result if isinstance(result, ToolOutput) else ToolOutput(result)


class LocalToolSet:
    """Tools and what they hold, as a worker is given them."""

    def __init__(self, *tools: Tool) -> None:
        self.tools: Sequence[Tool] = tools
        self.closed = False

    async def close(self) -> None:
        self.closed = True

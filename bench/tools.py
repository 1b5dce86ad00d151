"""Two trivial tools: what a call costs beyond them is Portside's own."""

from __future__ import annotations

from typing import Any

from tool_registry.context import ToolContext
from tool_registry.definition import ToolDefinition
from tool_registry.output import ToolOutput
from tool_registry.tool import RateLimit, ToolSource, ToolTraits

OWNER = "bench"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"text": {"type": "string", "minLength": 1, "maxLength": 200}},
    "required": ["text"],
    "additionalProperties": False,
}
# Counted like any other limit, and never reached.
_NEVER_REACHED = RateLimit(calls=1_000_000, per_s=1.0)


class TrivialTool:
    """Answers its argument."""

    def __init__(self, name: str, *, read_only: bool) -> None:
        self.definition = ToolDefinition.of(name, "Answers its argument.", SCHEMA)
        self.traits = ToolTraits(ToolSource.MCP, OWNER, read_only=read_only, rate_limit=_NEVER_REACHED)

    async def execute(self, params: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Answer `{"text": ...}`."""
        return ToolOutput({"text": params["text"]})


def trivial_tools() -> list[TrivialTool]:
    """`echo` is read-only; `note` counts as one with effects and gets a durable record."""
    return [TrivialTool("echo", read_only=True), TrivialTool("note", read_only=False)]

"""An MCP server's tool as a tool of the registry."""

from __future__ import annotations

from typing import Any

from tool_registry.context import ToolContext
from tool_registry.definition import ToolDefinition
from tool_registry.mcp.calls import ServerCalls, ServerRefused
from tool_registry.mcp.config import ServerConfig
from tool_registry.mcp.connection import ServerConnection
from tool_registry.mcp.listing import ServerTool
from tool_registry.mcp.output_schema import PromisedOutput
from tool_registry.mcp.result import to_output
from tool_registry.output import ToolOutput
from tool_registry.tool import Approval, ToolSource, ToolTraits


def owner_of(server: str) -> str:
    """The registry's owner name of a server's tools."""
    return f"mcp:{server}"


class McpTool:
    """One tool of one server. It outlives reconnections; calls go to whatever session there is."""

    def __init__(
        self, server: str, tool: ServerTool, config: ServerConfig, connection: ServerConnection
    ) -> None:
        self._tool = tool
        self._calls = ServerCalls(connection)
        self._timeout_s = config.timeout_s
        self._definition = ToolDefinition(f"{server}_{tool.name}", tool.description, tool.input_schema)
        self._traits = _traits(server, tool, config)
        self._promised = PromisedOutput(tool.output_schema) if tool.output_schema is not None else None

    @property
    def definition(self) -> ToolDefinition:
        """The proposed name `{server}_{tool}`; description and schema as the server gave them."""
        return self._definition

    @property
    def traits(self) -> ToolTraits:
        """What the server's annotations and the configuration say."""
        return self._traits

    async def execute(self, params: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Call the server under the tool's own name.

        Raises:
            CallError: as `ServerCalls.call`.
        """
        try:
            answer = await self._calls.call(
                self._tool.name, params, timeout_s=self._timeout_s, progress=context.progress
            )
        except ServerRefused as refusal:
            return ToolOutput.refusal(
                "mcp_error", refusal.message, mcp_code=refusal.code, tool=self._tool.name
            )
        return to_output(answer, self._promised)


def _traits(server: str, tool: ServerTool, config: ServerConfig) -> ToolTraits:
    read_only = tool.hints.read_only is True
    destructive = tool.hints.destructive is True and not read_only
    chosen = config.approval_for(tool.name)
    gated = destructive if chosen is None else chosen == "always"
    return ToolTraits(
        source=ToolSource.MCP,
        owner=owner_of(server),
        original_name=tool.name,
        approval=Approval.ALWAYS if gated else Approval.NEVER,
        timeout_s=config.timeout_s,
        read_only=read_only,
        idempotent=read_only or tool.hints.idempotent is True,
        destructive=destructive,
        coerce_safe=config.coerce == "safe",
    )

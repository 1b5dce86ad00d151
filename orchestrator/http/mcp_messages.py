"""The operator API's messages about MCP servers."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from orchestrator.http.operator_messages import OperatorRequest
from orchestrator.ports.tool_sources import McpServerView


class McpView(BaseModel):
    """An MCP server."""

    name: str
    transport: str
    state: str
    reason: str
    protocol_version: str
    tool_count: int
    last_error: str
    problems: list[str]

    @classmethod
    def of(cls, view: McpServerView) -> McpView:
        """The view of a server."""
        return cls(
            name=view.name,
            transport=view.transport,
            state=view.state,
            reason=view.reason,
            protocol_version=view.protocol_version,
            tool_count=view.tool_count,
            last_error=view.last_error,
            problems=list(view.problems),
        )


class McpRequest(OperatorRequest):
    """An MCP server's entry, as in a common `mcpServers` file; None tests the configured one."""

    config: dict[str, Any] | None = None


class McpFileView(BaseModel):
    """Why the file of MCP servers as it is now is not in use; "" when it is."""

    problem: str

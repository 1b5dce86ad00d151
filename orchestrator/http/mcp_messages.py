"""The operator API's messages about MCP servers."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from orchestrator.http.operator_request import OperatorRequest
from orchestrator.http.tool_messages import ProviderView
from orchestrator.ports.tool_sources import McpImported, McpServerView
from orchestrator.services.mcp_trials import McpTrial, TriedTool


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


class McpImportRequest(OperatorRequest):
    """A client's configuration file: its text, and its name for messages."""

    text: str = Field(max_length=4_000_000)
    source: str = Field(default="the file", max_length=1_000)
    replace: bool = False


class McpImportView(BaseModel):
    """What an import did."""

    added: list[str]
    replaced: list[str]
    unchanged: list[str]
    missing_secrets: list[str]
    notes: list[str]

    @classmethod
    def of(cls, done: McpImported) -> McpImportView:
        """The view of an import."""
        return cls(
            added=list(done.added),
            replaced=list(done.replaced),
            unchanged=list(done.unchanged),
            missing_secrets=list(done.missing_secrets),
            notes=list(done.notes),
        )


class McpToolView(BaseModel):
    """A tool of a server that was tried."""

    name: str
    original_name: str
    description: str
    hidden_reason: str
    providers: list[ProviderView]

    @classmethod
    def of(cls, tried: TriedTool) -> McpToolView:
        """The view of a tool."""
        return cls(
            name=tried.entry.name,
            original_name=tried.entry.traits.original_name,
            description=tried.entry.definition.description,
            hidden_reason=tried.hidden,
            providers=[ProviderView.of(one) for one in tried.verdicts],
        )


class McpTrialView(McpView):
    """How one connection to a server went; times are milliseconds."""

    server_name: str
    server_version: str
    capabilities: list[str]
    announces_changes: bool
    instructions_chars: int
    reach_ms: float
    handshake_ms: float
    list_ms: float
    tools: list[McpToolView]
    refused: dict[str, str]

    @classmethod
    def of_trial(cls, trial: McpTrial) -> McpTrialView:
        """The view of a trial."""
        server = trial.server
        given: dict[str, Any] = McpView.of(server).model_dump() | {"tool_count": len(trial.tools)}
        return cls(
            **given,
            server_name=server.introduction.name,
            server_version=server.introduction.version,
            capabilities=list(server.introduction.capabilities),
            announces_changes=server.introduction.announces_changes,
            instructions_chars=server.instructions_chars,
            reach_ms=round(server.timing.reach_ms, 1),
            handshake_ms=round(server.timing.handshake_ms, 1),
            list_ms=round(server.timing.list_ms, 1),
            tools=[McpToolView.of(one) for one in trial.tools],
            refused={one.proposed: one.error.message for one in trial.refused},
        )


class McpLoginPort(BaseModel):
    """The local port that the browser must be sent back to; 0 for any."""

    port: int


class McpLoginRequest(OperatorRequest):
    """Where the browser is sent back to: an address of this machine that the caller listens on."""

    callback: str = Field(pattern=r"^http://(127\.0\.0\.1|localhost):\d{1,5}/", max_length=200)


class McpLoginView(BaseModel):
    """A login that waits for a person to agree at `url`."""

    id: str
    url: str


class McpLoginAnswer(OperatorRequest):
    """The query that the browser came back with."""

    returned: dict[str, str] = Field(max_length=20)


class McpLoginDone(BaseModel):
    """The server that was logged in at, or out of."""

    name: str

"""BR-121: what an MCP server is given is told to whoever takes secrets out of text, before the server runs."""

from __future__ import annotations

from collections.abc import Collection

from tests.fakes import mcp_servers as fakes
from tests.support.mcp import until
from tool_registry.mcp.config import McpConfig
from tool_registry.mcp.servers import McpServers
from tool_registry.mcp.status import ServerState
from tool_registry.registry import ToolRegistry


async def test_resolved_secrets_and_literal_ones_are_told() -> None:
    told: dict[str, set[str]] = {}

    def on_secrets(server: str, values: Collection[str]) -> None:
        told.setdefault(server, set()).update(values)

    async def resolve(name: str) -> str | None:
        return f"value-of-{name}"

    env = {"A": "x ${secret:ONE}", "API_TOKEN": "literal-value", "MODE": "production"}
    config = McpConfig.model_validate({"mcpServers": {"s": {**fakes.command(fakes.Server), "env": env}}})
    registry = ToolRegistry()
    servers = McpServers(
        config,
        on_tools=lambda owner, offers, instructions: registry.replace(
            owner, offers, instructions=instructions
        ),
        resolve_secret=resolve,
        on_secrets=on_secrets,
    )
    async with servers:
        await until(lambda: servers.status()[0].state is ServerState.READY)
    assert told == {"s": {"value-of-ONE", "literal-value"}}

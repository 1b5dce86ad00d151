"""Trying an MCP server: one connection, and what its tools would be here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.domain.shaping.family import USUAL
from orchestrator.ports.tool_sources import McpControl, McpServerView
from orchestrator.services.tool_checks import ProviderVerdict, judged
from tool_registry.registry import Entry, Refused, ToolRegistry
from tool_registry.visibility import Hidden, hosted_visibility


@dataclass(frozen=True, slots=True)
class TriedTool:
    """A tool as it would be registered; `hidden` is "" when hosted jobs would see it."""

    entry: Entry
    hidden: str
    verdicts: tuple[ProviderVerdict, ...]


@dataclass(frozen=True, slots=True)
class McpTrial:
    """How it went.

    Attributes:
        tools: sorted by name; the names they would have if no other owner had the same.
        refused: tools that the registry would not take.
    """

    server: McpServerView
    tools: tuple[TriedTool, ...]
    refused: tuple[Refused, ...]


async def try_server(mcp: McpControl, name: str, config: Mapping[str, Any] | None) -> McpTrial:
    """Connect once, list the tools, judge them, and end the server.

    Args:
        mcp: connects.
        name: of the server; its tools' names begin with it.
        config: an entry as in the file; None tries the configured server of that name.

    Raises:
        PortsideError: the name or the entry can't be.
    """
    tried = await mcp.test(name, config)
    registry = ToolRegistry()
    refused = (
        registry.replace(tried.offers[0].tool.traits.owner, tried.offers).refused if tried.offers else ()
    )
    verdicts = judged(registry.entries(), USUAL)
    tools = tuple(
        TriedTool(entry, _hidden(entry), tuple(verdicts.get(entry.name, ()))) for entry in registry.entries()
    )
    return McpTrial(tried.status, tools, refused)


def _hidden(entry: Entry) -> str:
    verdict = hosted_visibility(entry.name, entry.traits, entry.state)
    return verdict.reason if isinstance(verdict, Hidden) else ""

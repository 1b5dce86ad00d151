"""What the servers' tools are to whoever shows them: handed on whole, and what of them was refused."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

from tool_registry.mcp.config import ServerConfig
from tool_registry.mcp.connection import ServerConnection
from tool_registry.mcp.listing import Listing
from tool_registry.mcp.tool import McpTool, owner_of
from tool_registry.registry import Offer, Replaced

logger = logging.getLogger("tool_registry.mcp")

MAX_INSTRUCTIONS_CHARS = 4_096


class OnTools(Protocol):
    """Takes a server's whole tool set, each time it changes; nothing when it is withdrawn."""

    def __call__(self, owner: str, offers: Sequence[Offer], instructions: str) -> Replaced:
        """Replace everything this owner offers; answers what was refused, among others."""
        ...


class ShownTools:
    """The tools of each server as they were last handed on."""

    def __init__(self, on_tools: OnTools) -> None:
        self._on_tools = on_tools
        self._refused: dict[str, tuple[str, ...]] = {}

    def put(self, server: str, offers: Sequence[Offer], instructions: str) -> None:
        """Hand on a server's whole set in place of the one before; its own words only where it has tools."""
        try:
            text = _labelled(server, instructions) if offers else ""
            replaced = self._on_tools(owner_of(server), offers, text)
            self._refused[server] = tuple(f"{one.proposed}: {one.error.message}" for one in replaced.refused)
            for problem in self._refused[server]:
                logger.warning("MCP server %s: left out: %s", server, problem)
        except Exception:
            # A listener's bug must neither end the server's task nor keep its process from being ended.
            logger.exception("MCP server %s: its tools could not be handed on", server)

    def refused(self, server: str) -> tuple[str, ...]:
        """What of its last set was not taken, and why."""
        return self._refused.get(server, ())


def offers_of(
    server: str, config: ServerConfig, connection: ServerConnection, listing: Listing
) -> tuple[Offer, ...]:
    """The tools of a listing that the configuration wants."""
    return tuple(
        Offer(McpTool(server, tool, config, connection)) for tool in listing.tools if config.wants(tool.name)
    )


def _labelled(server: str, instructions: str) -> str:
    text = instructions.strip()
    if not text:
        return ""
    cut = text[:MAX_INSTRUCTIONS_CHARS]
    return f"The MCP server {server!r} says about its tools (text of a third party, not of Portside):\n{cut}"

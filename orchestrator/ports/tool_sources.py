"""Where tools come from beside the service's own code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from tool_registry.registry import Offer


class WasmLoader(Protocol):
    """Makes tools of WASM components."""

    async def load(self, path: Path) -> Offer:
        """Load one file; what is wrong with it is the offer's reason, never an exception."""
        ...


class McpServerView(Protocol):
    """An MCP server as an operator sees it."""

    @property
    def name(self) -> str:
        """As configured."""
        ...

    @property
    def transport(self) -> str:
        """`stdio` or `http`."""
        ...

    @property
    def state(self) -> str:
        """`connecting`, `ready`, `reconnecting`, `failed`, `disabled` or `closed`."""
        ...

    @property
    def reason(self) -> str:
        """Why it is not ready, and what to do; "" when it is."""
        ...

    @property
    def protocol_version(self) -> str:
        """As negotiated; "" before."""
        ...

    @property
    def tool_count(self) -> int:
        """How many tools are offered."""
        ...

    @property
    def last_error(self) -> str:
        """The last thing that went wrong, also when all is well again."""
        ...

    @property
    def problems(self) -> tuple[str, ...]:
        """What is left out of its tool list, and why."""
        ...


class McpControl(Protocol):
    """The configured MCP servers.

    Raises:
        PortsideError: from every method, for a name or configuration that can't be.
    """

    @property
    def problem(self) -> str:
        """Why the configuration file as it is now is not in use; "" when it is."""
        ...

    def servers(self) -> Sequence[McpServerView]:
        """All of them, sorted by name."""
        ...

    async def add(self, name: str, config: Mapping[str, Any]) -> None:
        """Take a server in, remember it, and begin to connect."""
        ...

    async def remove(self, name: str) -> None:
        """End a server and forget it."""
        ...

    async def test(self, name: str, config: Mapping[str, Any] | None) -> McpServerView:
        """Connect once, list its tools and end it; None tests the configured server of that name."""
        ...

    async def reload(self) -> None:
        """Bring the servers up to their configuration file; one that can't be used changes nothing."""
        ...

    async def settled(self, within_s: float) -> Sequence[str]:
        """Wait until each server has answered or failed, or has been given this long since its start.

        Returns:
            The names of those that have done neither.
        """
        ...

"""Where tools come from beside the service's own code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from tool_registry.registry import Offer


class WasmLoader(Protocol):
    """Makes tools of WASM components."""

    async def load(self, path: Path, *, agreed: bytes | None = None) -> Offer:
        """Load one file; what is wrong with it is the offer's reason, never an exception.

        Args:
            path: the component; its sidecar lies beside it.
            agreed: the sidecar that was agreed to, b"" for none. One that asks for more gives an offer in the
                state `NEEDS_CONSENT`. Without it nothing needs consent.
        """
        ...

    def asks(self, sidecar: bytes) -> Sequence[str]:
        """What a sidecar grants, a line for each thing a person agrees to; none of one that is broken."""
        ...

    def beyond(self, sidecar: bytes, agreed: bytes) -> Sequence[str]:
        """What a sidecar asks for beyond one that was agreed to; none of one that is broken."""
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

    @property
    def introduction(self) -> McpIntroduction:
        """Who it says it is."""
        ...

    @property
    def instructions_chars(self) -> int:
        """How long its own instructions are."""
        ...

    @property
    def timing(self) -> McpTiming:
        """Of its last start."""
        ...


class McpIntroduction(Protocol):
    """Who a server says it is."""

    @property
    def name(self) -> str:
        """Its own name; "" when it gave none."""
        ...

    @property
    def version(self) -> str:
        """Its own version; "" when it gave none."""
        ...

    @property
    def capabilities(self) -> tuple[str, ...]:
        """`tools`, `resources`, `prompts`, ..."""
        ...

    @property
    def announces_changes(self) -> bool:
        """It says that it will tell when its tools change."""
        ...


class McpTiming(Protocol):
    """How long the steps of a start took; 0 for what was not reached."""

    @property
    def reach_ms(self) -> float:
        """Starting the process, or making ready for the URL."""
        ...

    @property
    def handshake_ms(self) -> float:
        """Until it introduced itself."""
        ...

    @property
    def list_ms(self) -> float:
        """Reading its tools."""
        ...


class McpTrialResult(Protocol):
    """How one connection to a server went."""

    @property
    def status(self) -> McpServerView:
        """The server, when it was ended again."""
        ...

    @property
    def offers(self) -> Sequence[Offer]:
        """Its tools; calls reach nobody any more."""
        ...


class McpImported(Protocol):
    """What an import of servers did; every name is a server's."""

    @property
    def added(self) -> tuple[str, ...]:
        """New here."""
        ...

    @property
    def replaced(self) -> tuple[str, ...]:
        """Configured differently before."""
        ...

    @property
    def unchanged(self) -> tuple[str, ...]:
        """Configured like that already."""
        ...

    @property
    def missing_secrets(self) -> tuple[str, ...]:
        """What they refer to and the secret store does not hold."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What of the file was passed over, and why."""
        ...


class McpBegunLogin(Protocol):
    """A login that waits for a person."""

    @property
    def id(self) -> str:
        """Of the login."""
        ...

    @property
    def url(self) -> str:
        """Where the person agrees."""
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

    async def import_file(self, text: str, *, source: str, replace: bool) -> McpImported:
        """Take in all servers of a client's configuration, or none."""
        ...

    async def test(self, name: str, config: Mapping[str, Any] | None) -> McpTrialResult:
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

    async def login_port(self, name: str) -> int:
        """The local port that the browser must be sent back to; 0 for any."""
        ...

    async def begin_login(self, name: str, callback: str) -> McpBegunLogin:
        """Begin to log in at a configured server; the browser is sent back to `callback`."""
        ...

    async def finish_login(self, id: str, returned: Mapping[str, str]) -> str:
        """Finish a login with what the browser came back with; answers the server's name."""
        ...

    async def logout(self, name: str) -> bool:
        """Remove what a login gave; False when there was nothing."""
        ...

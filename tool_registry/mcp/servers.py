"""All MCP servers of a configuration, side by side."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from types import TracebackType
from typing import Protocol, Self

from tool_registry.errors import PortsideError
from tool_registry.mcp.config import McpConfig, ServerConfig
from tool_registry.mcp.connection import ServerConnection
from tool_registry.mcp.http import HttpTransport
from tool_registry.mcp.listing import Listing
from tool_registry.mcp.log import ServerLog
from tool_registry.mcp.placeholders import SecretResolver, resolve_all
from tool_registry.mcp.status import ServerState, ServerStatus
from tool_registry.mcp.stdio import StdioTransport
from tool_registry.mcp.tool import McpTool, owner_of
from tool_registry.mcp.transport import Transport
from tool_registry.registry import Offer

logger = logging.getLogger("tool_registry.mcp")

CLOSE_LIMIT_S = 12.0
ANSWER_SLACK_S = 30.0
MAX_INSTRUCTIONS_CHARS = 4_096


class OnTools(Protocol):
    """Takes a server's whole tool set, each time it changes; nothing when it is withdrawn."""

    def __call__(self, owner: str, offers: Sequence[Offer], instructions: str) -> object:
        """Replace everything this owner offers."""
        ...


class UnknownServer(PortsideError):
    """There is no server of that name."""

    code = "mcp_server_not_found"


class DuplicateServer(PortsideError):
    """There is a server of that name already."""

    code = "mcp_server_exists"


OnSecrets = Callable[[str, Collection[str]], object]
"""Told a server's name and the values it was given that must never be shown."""

MakeTransport = Callable[[ServerConfig, Mapping[str, str], ServerLog], Transport]
"""Makes a transport from a server's configuration and its resolved env or headers."""


class McpServers:
    """Connects every enabled server in a task of its own and keeps the registry's view of them fresh.

    Nothing waits for a server: `start` returns at once, and tools appear as their servers answer.

    Args:
        config: which servers.
        on_tools: called in the event loop with each server's whole set.
        resolve_secret: answers `${secret:NAME}`.
        on_secrets: called before each start of a server.
        make_transport: for tests; stdio and streamable HTTP by default.
    """

    def __init__(
        self,
        config: McpConfig,
        *,
        on_tools: OnTools,
        resolve_secret: SecretResolver,
        on_secrets: OnSecrets = lambda _server, _values: None,
        make_transport: MakeTransport | None = None,
    ) -> None:
        self._configs = dict(config.servers)
        self._on_tools = on_tools
        self._resolve_secret = resolve_secret
        self._on_secrets = on_secrets
        self._make_transport = make_transport or default_transport
        self._connections: dict[str, ServerConnection] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def start(self) -> None:
        """Begin to connect all enabled servers, side by side; needs a running event loop."""
        for name, config in self._configs.items():
            if config.enabled and name not in self._tasks:
                self._run(name, config)

    def add(self, name: str, config: ServerConfig) -> None:
        """Take a server in and begin to connect it.

        Raises:
            DuplicateServer: remove the old one first.
        """
        if name in self._configs:
            raise DuplicateServer(f"there is an MCP server {name!r} already; remove it first")
        self._configs[name] = config
        if config.enabled:
            self._run(name, config)

    async def remove(self, name: str) -> None:
        """End a server and withdraw its tools.

        Raises:
            UnknownServer: there is none of that name.
        """
        if self._configs.pop(name, None) is None:
            raise UnknownServer(
                f"there is no MCP server {name!r}; known: {', '.join(sorted(self._configs)) or 'none'}"
            )
        await self._end([name])
        if name not in self._tasks:
            self._connections.pop(name, None)

    async def test(self, name: str, config: ServerConfig) -> ServerStatus:
        """Connect to a server once, list its tools and end it, whether it is configured or not."""
        connection = self._connection(name, config, lambda _listing, _instructions: None)
        await connection.try_once()
        return _status(name, config, connection)

    async def close(self) -> None:
        """End all servers, side by side; when this returns, none of their processes is left."""
        await self._end(list(self._tasks))

    def status(self) -> tuple[ServerStatus, ...]:
        """Every configured server, sorted by name."""
        return tuple(
            _status(name, self._configs[name], self._connections.get(name)) for name in sorted(self._configs)
        )

    def _run(self, name: str, config: ServerConfig) -> None:
        def publish(listing: Listing, instructions: str) -> None:
            if self._connections.get(name) is connection and name in self._tasks:
                self._publish(name, config, connection, listing, instructions)

        connection = self._connection(name, config, publish)
        self._connections[name] = connection
        self._tasks[name] = asyncio.create_task(connection.run(), name=f"mcp:{name}")

    def _connection(
        self, name: str, config: ServerConfig, on_listing: Callable[[Listing, str], None]
    ) -> ServerConnection:
        log = ServerLog(name)

        async def connect() -> Transport:
            resolved = await resolve_all(config.env or config.headers, self._resolve_secret)
            log.hide(resolved.secrets)
            self._on_secrets(name, resolved.secrets)
            return self._make_transport(config, resolved.values, log)

        return ServerConnection(
            name, connect, start_timeout_s=config.start_timeout_s, log=log, on_listing=on_listing
        )

    def _publish(
        self,
        name: str,
        config: ServerConfig,
        connection: ServerConnection,
        listing: Listing,
        instructions: str,
    ) -> None:
        offers = [
            Offer(McpTool(name, tool, config, connection))
            for tool in listing.tools
            if config.wants(tool.name)
        ]
        text = _labelled(name, instructions) if offers and config.instructions else ""
        self._push(name, offers, text)

    def _push(self, name: str, offers: Sequence[Offer], instructions: str) -> None:
        try:
            self._on_tools(owner_of(name), offers, instructions)
        except Exception:
            # A listener's bug must neither end the server's task nor keep its process from being ended.
            logger.exception("MCP server %s: its tools could not be handed on", name)

    async def _end(self, names: Sequence[str]) -> None:
        ending = {name: task for name in names if (task := self._tasks.pop(name, None)) is not None}
        for name in ending:
            self._connections[name].close()
            self._push(name, (), "")
        if ending:
            _, late = await asyncio.wait(ending.values(), timeout=CLOSE_LIMIT_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*ending.values(), return_exceptions=True)


def default_transport(config: ServerConfig, values: Mapping[str, str], log: ServerLog) -> Transport:
    """Standard input and output for a `command`, streamable HTTP for a `url`."""
    if config.url is not None:
        return HttpTransport(config.url, values, answer_timeout_s=config.timeout_s + ANSWER_SLACK_S)
    assert config.command is not None
    return StdioTransport(
        config.command, config.args, env=values, cwd=config.cwd, log=log, inherited=os.environ
    )


def _labelled(server: str, instructions: str) -> str:
    text = instructions.strip()
    if not text:
        return ""
    cut = text[:MAX_INSTRUCTIONS_CHARS]
    return f"The MCP server {server!r} says about its tools (text of a third party, not of Portside):\n{cut}"


def _status(name: str, config: ServerConfig, connection: ServerConnection | None) -> ServerStatus:
    transport = "http" if config.url is not None else "stdio"
    if connection is None:
        return ServerStatus(name, transport, ServerState.DISABLED, "`enabled` is false in the configuration")
    offered = [tool for tool in connection.listing.tools if config.wants(tool.name)]
    return ServerStatus(
        name,
        transport,
        connection.state,
        connection.reason,
        connection.version,
        len(offered),
        connection.last_error,
        connection.listing.problems,
    )

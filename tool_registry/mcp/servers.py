"""All MCP servers of a configuration, side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import anyio
import httpx2

from tool_registry.errors import PortsideError
from tool_registry.mcp.config import McpConfig, ServerConfig
from tool_registry.mcp.connection import ServerConnection
from tool_registry.mcp.grants import GrantAuth, GrantKeeper, Grants
from tool_registry.mcp.listing import Listing
from tool_registry.mcp.log import ServerLog
from tool_registry.mcp.placeholders import SecretResolver, resolve_all
from tool_registry.mcp.shown_tools import OnTools, ShownTools, offers_of
from tool_registry.mcp.status import ServerState, ServerStatus
from tool_registry.mcp.transport import Transport
from tool_registry.mcp.transports import MakeTransport, default_transport
from tool_registry.registry import Offer

CLOSE_LIMIT_S = 12.0


class UnknownServer(PortsideError):
    """There is no server of that name."""

    code = "mcp_server_not_found"


class DuplicateServer(PortsideError):
    """There is a server of that name already."""

    code = "mcp_server_exists"


@dataclass(frozen=True, slots=True)
class ServerTrial:
    """How one connection went, and the tools that it gave; their calls reach nobody any more."""

    status: ServerStatus
    offers: tuple[Offer, ...]


OnSecrets = Callable[[str, Collection[str]], object]
"""Told a server's name and the values it was given that must never be shown."""


class McpServers:
    """Connects every enabled server in a task of its own and keeps the registry's view of them fresh.

    Nothing waits for a server: `start` returns at once, and tools appear as their servers answer.

    Args:
        config: which servers.
        on_tools: called in the event loop with each server's whole set.
        resolve_secret: answers `${secret:NAME}`.
        grants: what logins gave.
        on_secrets: called before each start of a server.
        make_transport: for tests; stdio and streamable HTTP by default.
    """

    def __init__(
        self,
        config: McpConfig,
        *,
        on_tools: OnTools,
        resolve_secret: SecretResolver,
        grants: Grants | None = None,
        on_secrets: OnSecrets = lambda _server, _values: None,
        make_transport: MakeTransport | None = None,
    ) -> None:
        self._configs = dict(config.servers)
        self._shown = ShownTools(on_tools)
        self._resolve_secret = resolve_secret
        self._grants = grants
        self._on_secrets = on_secrets
        self._make_transport = make_transport or default_transport
        self._connections: dict[str, ServerConnection] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._began: dict[str, float] = {}

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

    async def replace(self, name: str, config: ServerConfig) -> None:
        """Give a server another configuration and connect anew.

        Its tools stay offered until the first attempt has ended; calls meanwhile hear that it is not
        connected.

        Raises:
            UnknownServer: there is none of that name.
        """
        self._require(name)
        self._configs[name] = config
        await self._end([name], withdraw=not config.enabled)
        if config.enabled:
            self._run(name, config)
        else:
            self._connections.pop(name, None)

    async def reconnect(self, name: str) -> None:
        """Connect to a server anew, as after a login.

        Raises:
            UnknownServer: there is none of that name.
        """
        self._require(name)
        await self.replace(name, self._configs[name])

    async def remove(self, name: str) -> None:
        """End a server and withdraw its tools.

        Raises:
            UnknownServer: there is none of that name.
        """
        self._require(name)
        del self._configs[name]
        await self._end([name])
        if name not in self._tasks:
            self._connections.pop(name, None)

    async def test(self, name: str, config: ServerConfig) -> ServerTrial:
        """Connect to a server once, list its tools and end it, whether it is configured or not."""
        connection = self._connection(name, config, lambda _listing, _instructions: None)
        await connection.try_once()
        status = _status(name, config, connection)
        return ServerTrial(status, offers_of(name, config, connection, connection.listing))

    def connects(self, name: str) -> bool:
        """Whether there is a server of this name that is kept connected here."""
        return name in self._tasks

    def configs(self) -> dict[str, ServerConfig]:
        """What every server is configured to be, by name."""
        return dict(self._configs)

    async def settled(self, within_s: float) -> list[str]:
        """Wait until each server's first attempt has ended, or has taken this long since it began.

        Returns:
            The names of those that are still connecting.
        """
        waiting = [name for name in self._tasks if self._connections[name].state is ServerState.CONNECTING]
        await asyncio.gather(*(self._settled(name, within_s) for name in waiting))
        return [
            name
            for name in waiting
            if name in self._tasks and self._connections[name].state is ServerState.CONNECTING
        ]

    async def _settled(self, name: str, within_s: float) -> None:
        with anyio.CancelScope(deadline=self._began[name] + within_s):
            await self._connections[name].settled()

    async def close(self) -> None:
        """End all servers, side by side; when this returns, none of their processes is left."""
        await self._end(list(self._tasks))

    def status(self) -> tuple[ServerStatus, ...]:
        """Every configured server, sorted by name."""
        return tuple(
            _status(name, self._configs[name], self._connections.get(name), self._shown.refused(name))
            for name in sorted(self._configs)
        )

    def _require(self, name: str) -> None:
        if name not in self._configs:
            raise UnknownServer(
                f"there is no MCP server {name!r}; known: {', '.join(sorted(self._configs)) or 'none'}"
            )

    def _run(self, name: str, config: ServerConfig) -> None:
        def publish(listing: Listing, instructions: str) -> None:
            if self._connections.get(name) is connection and name in self._tasks:
                offers = offers_of(name, config, connection, listing)
                self._shown.put(name, offers, instructions if config.instructions else "")

        connection = self._connection(name, config, publish)
        self._connections[name] = connection
        self._began[name] = anyio.current_time()
        self._tasks[name] = asyncio.create_task(connection.run(), name=f"mcp:{name}")

    def _connection(
        self, name: str, config: ServerConfig, on_listing: Callable[[Listing, str], None]
    ) -> ServerConnection:
        log = ServerLog(name)

        async def connect() -> Transport:
            resolved = await resolve_all(config.env or config.headers, self._resolve_secret)

            def hide(secrets: Iterable[str]) -> None:
                known = [value for value in secrets if value]
                log.hide(known)
                self._on_secrets(name, known)

            hide(resolved.secrets)
            return self._make_transport(config, resolved.values, log, await self._auth(name, config, hide))

        return ServerConnection(
            name, connect, start_timeout_s=config.start_timeout_s, log=log, on_listing=on_listing
        )

    async def _auth(
        self, name: str, config: ServerConfig, hide: Callable[[Iterable[str]], None]
    ) -> httpx2.Auth | None:
        """What a login at this server gave; the configuration's own `Authorization` goes before it."""
        own = any(header.lower() == "authorization" for header in config.headers)
        if config.url is None or own or self._grants is None:
            return None
        grant = await self._grants.load(name, config.url)
        if grant is None:
            return None
        hide(grant.secrets())
        return GrantAuth(GrantKeeper(self._grants, name, grant, hide))

    async def _end(self, names: Sequence[str], *, withdraw: bool = True) -> None:
        ending = {name: task for name in names if (task := self._tasks.pop(name, None)) is not None}
        for name in ending:
            self._connections[name].close()
            if withdraw:
                self._shown.put(name, (), "")
        if ending:
            _, late = await asyncio.wait(ending.values(), timeout=CLOSE_LIMIT_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*ending.values(), return_exceptions=True)


def _status(
    name: str, config: ServerConfig, connection: ServerConnection | None, refused: Sequence[str] = ()
) -> ServerStatus:
    transport = "stdio" if config.url is None else "sse" if config.type == "sse" else "http"
    if connection is None:
        return ServerStatus(name, transport, ServerState.DISABLED, "`enabled` is false in the configuration")
    offered = [tool for tool in connection.listing.tools if config.wants(tool.name)]
    return ServerStatus(
        name,
        connection.transport or transport,
        connection.state,
        connection.reason,
        connection.version,
        len(offered) - len(refused),
        connection.last_error,
        (*connection.listing.problems, *refused),
        connection.introduction,
        len(connection.instructions),
        connection.timing,
    )

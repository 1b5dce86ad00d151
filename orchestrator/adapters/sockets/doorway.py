"""What stands on a job's socket: the app for every request, but a tunnel for CONNECT."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

from orchestrator.adapters.sockets.peers import Peers, too_many

Tunnel = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

_CONNECT = b"CONNECT "
_LIMIT_BYTES = 64 * 1024


class Doorways:
    """Makes a doorway for each connection of one socket, and ends what went through to a tunnel.

    Args:
        app: makes the protocol that serves the app.
        tunnel: serves a connection that began with CONNECT, to its end.
        peers: has those that said nothing yet.
    """

    def __init__(self, app: Callable[[], asyncio.Protocol], tunnel: Tunnel, peers: Peers) -> None:
        self._app = app
        self._tunnel = tunnel
        self._peers = peers
        self._waiting: set[_Doorway] = set()
        self._tunnels: set[asyncio.Task[None]] = set()

    def doorway(self) -> asyncio.Protocol:
        """For a new connection."""
        return _Doorway(self._waiting, self._peers, self._chosen)

    def _chosen(self, *, tunnel: bool) -> asyncio.Protocol:
        if not tunnel:
            return self._app()
        reader = asyncio.StreamReader(limit=_LIMIT_BYTES)
        return asyncio.StreamReaderProtocol(reader, self._begin)

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._served(reader, writer))
        self._tunnels.add(task)
        task.add_done_callback(self._tunnels.discard)

    async def _served(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._tunnel(reader, writer)
        finally:
            writer.close()

    async def close(self) -> None:
        """End connections that said nothing, and every tunnel."""
        for doorway in list(self._waiting):
            doorway.drop()
        for task in self._tunnels:
            task.cancel()
        await asyncio.gather(*self._tunnels, return_exceptions=True)


class _Doorway(asyncio.Protocol):
    """Waits for the first bytes, and hands the connection to whoever they are for."""

    def __init__(self, waiting: set[_Doorway], peers: Peers, chosen: Callable[..., asyncio.Protocol]) -> None:
        self._waiting = waiting
        self._peers = peers
        self._chosen = chosen
        self._first = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are no subclass
        self._waiting.add(self)
        if not self._peers.join(self):
            self._transport.write(too_many())
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        self._first += data
        first, transport = self._first, self._transport
        if transport is None or (len(first) < len(_CONNECT) and _CONNECT.startswith(first)):
            return
        self._leave()
        chosen = self._chosen(tunnel=first.startswith(_CONNECT))
        transport.set_protocol(chosen)
        chosen.connection_made(transport)
        chosen.data_received(first)

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()

    def _leave(self) -> None:
        self._waiting.discard(self)
        self._peers.leave(self)

    def late(self) -> bool:
        return True  # it has said nothing that tells what it wants

    def drop(self) -> None:
        if self._transport is not None:
            self._transport.abort()

"""The relay's listener."""

from __future__ import annotations

import asyncio

from worker.clients import Clients
from worker.relay.exchange import Exchange
from worker.relay.upstream import Upstream

HOST = "127.0.0.1"
MAX_CONNECTIONS = 64


class Relay:
    """Listens on a free port of loopback.

    Attributes:
        port: where; 0 before `open`.
    """

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._server: asyncio.Server | None = None
        self._clients = Clients("the relay", most=MAX_CONNECTIONS, serve=self._serve)
        self.port = 0

    async def open(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._clients.accept, HOST, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """End every connection; requests under way are called off."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        await self._clients.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await Exchange(reader, writer, self._upstream).serve()

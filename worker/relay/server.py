"""The relay's listener."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from worker.relay.exchange import Exchange
from worker.relay.upstream import Upstream

HOST = "127.0.0.1"
MAX_CONNECTIONS = 64
_LOG = logging.getLogger("portside.worker")


class Relay:
    """Listens on a free port of loopback.

    Attributes:
        port: where; 0 before `open`.
    """

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self.port = 0

    async def open(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._accept, HOST, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """End every connection; requests under way are called off."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._server is None or len(self._serving) >= MAX_CONNECTIONS:
            _LOG.warning(
                "a connection to the relay was turned away: %d are served at a time", MAX_CONNECTIONS
            )
            writer.close()
            return
        task = asyncio.create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await Exchange(reader, writer, self._upstream).serve()
        except Exception:  # noqa: BLE001 - a connection that breaks ends alone
            _LOG.exception("a connection to the relay broke")
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

"""The worker's bridge socket: one MCP session a connection."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

import anyio

from worker.clients import Clients

MAX_SESSIONS = 16


class Session(Protocol):
    """What serves one client."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Speak with a client until it leaves."""
        ...


class BridgeGate:
    """Listens for `python -m worker mcp`.

    Args:
        path: of the socket; its directory is made.
        session: makes the session of a new connection.
    """

    def __init__(self, path: Path, session: Callable[[], Awaitable[Session]]) -> None:
        self._path = path
        self._session = session
        self._server: asyncio.Server | None = None
        self._clients = Clients("the bridge", most=MAX_SESSIONS, serve=self._serve)

    async def open(self) -> None:
        """Listen.

        Raises:
            OSError: the socket can't be made there.
        """
        await anyio.Path(self._path.parent).mkdir(mode=0o700, parents=True, exist_ok=True)
        await anyio.Path(self._path).unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(self._clients.accept, str(self._path))
        await anyio.Path(self._path).chmod(0o600)

    async def close(self) -> None:
        """End every session."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        await self._clients.close()
        await anyio.Path(self._path).unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await (await self._session()).serve(reader, writer)

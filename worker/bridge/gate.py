"""The worker's bridge socket: one MCP session a connection."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import anyio

MAX_SESSIONS = 16
_LOG = logging.getLogger("portside.worker")


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
        self._serving: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Listen.

        Raises:
            OSError: the socket can't be made there.
        """
        await anyio.Path(self._path.parent).mkdir(mode=0o700, parents=True, exist_ok=True)
        await anyio.Path(self._path).unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(self._accept, str(self._path))
        await anyio.Path(self._path).chmod(0o600)

    async def close(self) -> None:
        """End every session."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        await anyio.Path(self._path).unlink(missing_ok=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._server is None or len(self._serving) >= MAX_SESSIONS:
            _LOG.warning("a bridge was turned away: %d are served at a time", MAX_SESSIONS)
            writer.close()
            return
        task = asyncio.create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await (await self._session()).serve(reader, writer)
        except Exception:  # noqa: BLE001 - a session that breaks ends alone
            _LOG.exception("a bridge session broke")
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

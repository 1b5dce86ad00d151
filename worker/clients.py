"""The clients of one of the worker's listeners: so many at a time, each served on its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
_LOG = logging.getLogger("portside.worker")


class Clients:
    """Takes connections in and serves them until `close`.

    Args:
        listener: what they connect to, for the log.
        most: served at a time; more are turned away.
        serve: serves one client; what it raises ends that client's connection alone.
    """

    def __init__(self, listener: str, *, most: int, serve: Serve) -> None:
        self._listener = listener
        self._most = most
        self._serve = serve
        self._serving: set[asyncio.Task[None]] = set()
        self._closed = False

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Begin to serve a client; what `asyncio.start_server` calls."""
        if self._closed or len(self._serving) >= self._most:
            _LOG.warning(
                "a connection to %s was turned away: %d are served at a time", self._listener, self._most
            )
            writer.close()
            return
        task = asyncio.create_task(self._served(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def close(self) -> None:
        """End every connection, and take no more."""
        self._closed = True
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _served(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._serve(reader, writer)
        except ConnectionError:
            pass  # the client is gone
        except Exception:  # noqa: BLE001 - a connection that breaks ends alone
            _LOG.exception("a connection to %s broke", self._listener)
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

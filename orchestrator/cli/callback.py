"""The local address that a browser is sent back to after a login."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import parse_qsl, urlsplit

from orchestrator.cli.failures import CommandFailed

PATH = "/callback"
_PAGE = (
    b"<!doctype html><meta charset=utf-8><title>Portside</title>"
    b"<p>Done. You can close this page and go back to the terminal."
)
_READ_S = 10.0


class Callback:
    """Listens on this machine for one visit.

    Attributes:
        url: where the browser has to be sent.
    """

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}{PATH}"
        self._returned: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()

    async def returned(self, within_s: float) -> dict[str, str]:
        """The query that the browser came back with.

        Raises:
            CommandFailed: it did not come in time.
        """
        try:
            async with asyncio.timeout(within_s):
                return await self._returned
        except TimeoutError:
            raise CommandFailed(f"nobody agreed within {within_s / 60:g} minutes; try again") from None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request; anything but the callback gets 404."""
        try:
            async with asyncio.timeout(_READ_S):
                head = await reader.readuntil(b"\r\n\r\n")
            _, target, _ = head.split(b"\r\n", 1)[0].decode("ascii", "replace").split(" ", 2)
            parts = urlsplit(target)
            found = parts.path == PATH
            status, page = (b"200 OK", _PAGE) if found else (b"404 Not Found", b"")
            writer.write(
                b"HTTP/1.1 %s\r\ncontent-type: text/html\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s"
                % (status, len(page), page)
            )
            await writer.drain()
            if found and not self._returned.done():
                self._returned.set_result(dict(parse_qsl(parts.query)))
        except (OSError, ValueError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return  # no browser of ours
        finally:
            writer.close()


@asynccontextmanager
async def listening(port: int) -> AsyncGenerator[Callback]:
    """A callback on a local port; 0 for a free one.

    Raises:
        CommandFailed: the port is taken.
    """
    callback: Callback | None = None

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert callback is not None
        await callback.serve(reader, writer)

    try:
        server = await asyncio.start_server(serve, "127.0.0.1", port)
    except OSError as error:
        raise CommandFailed(f"port {port} can't be listened on: {error.strerror}") from None
    async with server:
        callback = Callback(server.sockets[0].getsockname()[1])
        yield callback

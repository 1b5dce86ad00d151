"""One client's connection to the proxy: a request, then bytes both ways."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus

from tool_registry.errors import PortsideError
from worker.egress.line import EgressLine, Ends
from worker.egress.request import NotForProxy, ProxyRequest, parse_request
from worker.protocol.problems import STATUS

_HEAD_S = 30.0
_CHUNK_BYTES = 64 * 1024
_MAX_REASON = 300
_LINGER_S = 2.0
_MADE = b"HTTP/1.1 200 Connection established\r\n\r\n"


class Exchange:
    """Serves a connection to its end.

    Args:
        client: the command's end.
        line: leads out.
        refused: told why a host can't be had.
    """

    def __init__(self, client: Ends, line: EgressLine, refused: Callable[[str], None]) -> None:
        self._client = client
        self._line = line
        self._refused = refused

    async def serve(self) -> None:
        """Read the request, open the connection, carry until both ends are through."""
        try:
            async with asyncio.timeout(_HEAD_S):
                request = parse_request(await self._client[0].readuntil(b"\r\n\r\n"))
        except (NotForProxy, asyncio.LimitOverrunError) as error:
            await self._say(HTTPStatus.BAD_REQUEST, str(error))
            return
        except (TimeoutError, asyncio.IncompleteReadError):
            return
        try:
            host = await self._line.open(request.target)
        except PortsideError as error:
            self._refused(error.message)
            await self._say(HTTPStatus(STATUS.get(error.code, 502)), error.message)
            return
        try:
            await self._carry(request, host)
        finally:
            host[1].close()

    async def _carry(self, request: ProxyRequest, host: Ends) -> None:
        if request.is_tunnel:
            self._client[1].write(_MADE)
        else:
            host[1].write(request.first)
        out = asyncio.create_task(_copied(self._client[0], host[1]))
        back = asyncio.create_task(_copied(host[0], self._client[1]))
        try:
            await asyncio.wait(
                {back}
            )  # what the host says last still arrives; what it no longer reads does not
        finally:
            out.cancel()
            back.cancel()
            await asyncio.gather(out, back, return_exceptions=True)

    async def _say(self, status: HTTPStatus, text: str) -> None:
        """Refuse, with the reason in the first line: most clients show no more of an answer to CONNECT."""
        body = f"{text}\n".encode()
        reason = re.sub(r"[^\x20-\x7e]+", " ", text)[:_MAX_REASON]
        head = (
            f"HTTP/1.1 {status.value} {reason}\r\nContent-Type: text/plain; charset=utf-8\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        reader, writer = self._client
        writer.write(head.encode("ascii") + body)
        await writer.drain()
        writer.write_eof()
        with suppress(TimeoutError):  # closed at once, a client that still sends would not read it
            async with asyncio.timeout(_LINGER_S):
                while await reader.read(_CHUNK_BYTES):
                    pass


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(_CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
        writer.write_eof()

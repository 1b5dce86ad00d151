"""The loopback proxy's listener, and what commands are told of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from worker.clients import Clients
from worker.egress.exchange import Exchange
from worker.egress.line import EgressLine

HOST = "127.0.0.1"
MAX_CONNECTIONS = 128
_MAX_HEAD_BYTES = 64 * 1024
_MAX_REFUSALS = 20
_LOCAL = "localhost,127.0.0.1,::1"


class EgressProxy:
    """Listens on a free port of loopback while it is open."""

    def __init__(self, line: EgressLine) -> None:
        self._line = line
        self._server: asyncio.Server | None = None
        self._clients = Clients("the proxy", most=MAX_CONNECTIONS, serve=self._serve)
        self._refusals: dict[str, None] = {}
        self._port = 0

    async def open(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._clients.accept, HOST, 0, limit=_MAX_HEAD_BYTES)
        self._port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """End every connection."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        await self._clients.close()

    def environment(self) -> Mapping[str, str]:
        """The variables by which programs find it; each program reads its own spelling."""
        url = f"http://{HOST}:{self._port}"
        named = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), url)
        # npm and older pip read these; Node's own fetch asks for a switch.
        return {**named, "NO_PROXY": _LOCAL, "no_proxy": _LOCAL, "NODE_USE_ENV_PROXY": "1"}

    def refusals(self) -> list[str]:
        """What was refused since this was asked last, each once."""
        told, self._refusals = list(self._refusals), {}
        return told

    def _note(self, why: str) -> None:
        if len(self._refusals) < _MAX_REFUSALS:
            self._refusals[why] = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await Exchange((reader, writer), self._line, self._note).serve()

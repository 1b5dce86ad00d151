"""An app behind a bound socket, served by uvicorn's protocol."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.server import ServerState

from orchestrator.adapters.sockets.bounded_protocol import BoundedProtocol
from orchestrator.adapters.sockets.doorway import Doorways, Tunnel
from orchestrator.adapters.sockets.peers import LOOK_S, Peers

_BACKLOG = 128
_LAST_ANSWERS_S = 2.0
MAX_PEERS = 128


class Marked:
    """Pure ASGI: says in the scope which socket a request came in on."""

    def __init__(self, app: ASGIApp, marks: Mapping[str, Any]) -> None:
        self._app = app
        self._marks = marks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on with the marks; what a client claims in headers counts for nothing."""
        scope.update(self._marks)  # nobody is above who keeps the scope: a copy would be for nothing
        await self._app(scope, receive, send)


@dataclass(slots=True)
class _Listening:
    server: asyncio.Server
    state: ServerState
    doorways: Doorways | None
    looking: asyncio.Task[None]


class HttpListener:
    """Serves one app on one socket; with a `tunnel`, that serves what begins with CONNECT.

    Attributes:
        peers: who is connected. Who is late too often is dropped.
    """

    def __init__(self, app: ASGIApp, tunnel: Tunnel | None = None, *, most_peers: int = MAX_PEERS) -> None:
        self._app = app
        self._tunnel = tunnel
        self.peers = Peers(most_peers)
        self._listening: _Listening | None = None
        self._closing = False

    async def open(self, bound: socket.socket) -> None:
        """Listen on a bound stream socket.

        Raises:
            OSError: it can't be listened on.
        """
        config = uvicorn.Config(
            self._served,
            interface="asgi3",
            ws="none",
            proxy_headers=False,
            lifespan="off",
            log_config=None,
            log_level="error",  # what peers do wrong would fill the log
            access_log=False,
        )
        config.load()
        state = ServerState()

        def protocol() -> asyncio.Protocol:
            return BoundedProtocol(config, state, self.peers)

        doorways = Doorways(protocol, self._tunnel, self.peers) if self._tunnel else None
        served = doorways.doorway if doorways else protocol
        loop = asyncio.get_running_loop()
        if bound.family == socket.AF_UNIX:
            server = await loop.create_unix_server(served, sock=bound, backlog=_BACKLOG)
        else:
            server = await loop.create_server(served, sock=bound, backlog=_BACKLOG)
        self._listening = _Listening(server, state, doorways, loop.create_task(self._look()))

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            self.peers.look()

    async def _served(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The app; a request that `close` cuts off ends without a word, since nobody waits for it."""
        try:
            await self._app(scope, receive, send)
        except asyncio.CancelledError:
            if not self._closing:
                raise

    @property
    def listening(self) -> bool:
        """Whether it was opened and not closed to the end."""
        return self._listening is not None

    async def close(self) -> None:
        """Stop listening; requests under way are cut off after a moment.

        A close that is cut off itself can be repeated.
        """
        listening = self._listening
        if listening is None:
            return
        self._closing = True
        listening.looking.cancel()
        listening.server.close()
        if listening.doorways is not None:
            await listening.doorways.close()
        for connection in list(listening.state.connections):
            connection.shutdown()
        if listening.state.tasks:
            _, late = await asyncio.wait(list(listening.state.tasks), timeout=_LAST_ANSWERS_S)
            for connection in list(listening.state.connections):
                connection.transport.abort()
            await asyncio.sleep(0)  # they learn of it before their requests end
            for request in late:
                request.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        self._listening = None

"""uvicorn's HTTP protocol, with the bounds that it leaves to a proxy in front of it."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from orchestrator.adapters.sockets.peers import Peers, refusal, too_many

MAX_HEAD_BYTES = 64 * 1024
MAX_HEADERS = 128
_MAX_PIPELINED = 8
_LEAST_BYTES = 1024  # between two looks, from or to a peer that is waited for


class _Refused(Exception):
    """The parser stops at it; what is wrong stands in `BoundedProtocol.refused`."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection: its heads are bounded, and a peer that sends or reads next to nothing is late."""

    def __init__(self, config: Config, state: ServerState, peers: Peers) -> None:
        super().__init__(config=config, server_state=state, app_state={})
        self._peers = peers
        self._came_bytes = 0
        self._head_bytes = 0  # of a head or trailer that is not whole
        self._unsent_bytes = 0
        self._drained = False
        self._asked = False
        self._refused = ""

    def connection_made(self, transport: asyncio.Transport) -> None:
        """As uvicorn's; one too many hears so and is closed."""
        super().connection_made(transport)
        if not self._peers.join(self):
            transport.write(too_many())
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """As uvicorn's."""
        self._peers.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """As uvicorn's, but a head or trailer without end is refused."""
        self._came_bytes += len(data)
        self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self._refuse(f"the head of the request has more than {MAX_HEAD_BYTES:,} bytes")

    def on_headers_complete(self) -> None:
        """As uvicorn's, with bounds on what one chunk of bytes can hold."""
        if len(self.headers) > MAX_HEADERS:
            self._refused = f"the request has more than {MAX_HEADERS} headers"
            raise _Refused
        if len(self.pipeline) >= _MAX_PIPELINED:
            self._refused = f"more than {_MAX_PIPELINED} requests were sent ahead of the answers"
            raise _Refused
        self._asked = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """As uvicorn's."""
        self._head_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """As uvicorn's."""
        self._head_bytes = 0
        super().on_message_complete()

    def resume_writing(self) -> None:
        """As uvicorn's."""
        self._drained = True
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP, or passed a bound, is refused in the one shape of errors."""
        self._refuse(self._refused or msg)

    def _refuse(self, detail: str) -> None:
        if self._answering:
            self.transport.abort()  # an answer is under way: two would be mixed
            return
        self.transport.write(refusal(HTTPStatus.BAD_REQUEST, "invalid_request", detail))
        self.transport.close()

    @property
    def _answering(self) -> bool:
        return self._asked and not self.cycle.response_complete

    def late(self) -> bool:
        """Whether it is in the middle of a request or an answer, and next to nothing moves."""
        came, self._came_bytes = self._came_bytes, 0
        drained, self._drained = self._drained, False
        before, self._unsent_bytes = self._unsent_bytes, self.transport.get_write_buffer_size()
        if before and self._unsent_bytes > before - _LEAST_BYTES and not drained:
            return self._unsent_bytes > 0
        if not self._answering:
            return not self._asked or self.cycle.more_body or self._head_bytes > 0
        return self.cycle.more_body and not self.flow.read_paused and came < _LEAST_BYTES

    def drop(self) -> None:
        """End it at once."""
        self.transport.abort()

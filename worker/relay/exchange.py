"""One client's connection to the relay: requests in, answers out, by h11."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress

import h11
import httpx

from tool_registry.errors import PortsideError
from worker.protocol.problems import MEDIA_TYPE, Problem
from worker.relay.refusals import for_sdk, problem_of
from worker.relay.rules import MAX_BODY_BYTES, Header, Refused, Target, returned, sent, target_of
from worker.relay.upstream import NativeRequest, Upstream

_CHUNK_BYTES = 64 * 1024
_MAX_HEAD_BYTES = 64 * 1024
_LINGER_BYTES = 64 * 1024 * 1024
_LINGER_S = 2.0
_LOG = logging.getLogger("portside.worker")
_TOO_LARGE = Refused(413, "payload_too_large", f"the body has more than {MAX_BODY_BYTES:,} bytes")


class Exchange:
    """Serves a connection until its client leaves or breaks a rule of HTTP."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, upstream: Upstream
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._upstream = upstream
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_MAX_HEAD_BYTES)

    async def serve(self) -> None:
        """Answer requests in turn."""
        try:
            while await self._one():
                self._http.start_next_cycle()
        except h11.RemoteProtocolError as error:
            await self._refuse(Refused(error.error_status_hint, "invalid_request", "this is not HTTP/1.1"))
        except ConnectionError:
            return  # the client is gone

    async def _one(self) -> bool:
        """Serve a request; answers whether another may follow."""
        event = await self._next()
        if not isinstance(event, h11.Request):
            return False
        method, raw = event.method.decode("ascii"), event.target.decode("latin-1")
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in event.headers]
        target = target_of(method, raw)
        body = await self._body() if isinstance(target, Target) else b""
        if isinstance(target, Refused) or body is None:
            await self._refuse(target if isinstance(target, Refused) else _TOO_LARGE)
            await self._linger()
            return False
        await self._forward(NativeRequest(method, target.name, target.query, sent(headers), body))
        return self._http.our_state is h11.DONE and self._http.their_state is h11.DONE

    async def _linger(self) -> None:
        """Take what the client still sends, for a moment: closed at once, it would not read the refusal."""
        left = _LINGER_BYTES
        with suppress(TimeoutError):
            async with asyncio.timeout(_LINGER_S):
                while left > 0 and (data := await self._reader.read(_CHUNK_BYTES)):
                    left -= len(data)

    async def _body(self) -> bytes | None:
        """The request's whole body; None when it is too large."""
        if self._http.they_are_waiting_for_100_continue:
            await self._send(h11.InformationalResponse(status_code=100, headers=[]))
        body = bytearray()
        while True:
            event = await self._next()
            if isinstance(event, h11.EndOfMessage):
                return bytes(body)
            if not isinstance(event, h11.Data):
                raise ConnectionResetError
            body += event.data
            if len(body) > MAX_BODY_BYTES:
                return None

    async def _forward(self, request: NativeRequest) -> None:
        """Pass a request on and its answer back; a client that leaves ends the request at once."""
        answering = asyncio.create_task(self._answer(request))
        leaving = asyncio.create_task(self._gone())
        try:
            await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (answering, leaving):
                task.cancel()
            await asyncio.gather(answering, leaving, return_exceptions=True)
        if not answering.cancelled():
            answering.result()

    async def _gone(self) -> None:
        """Return when the client has hung up; what it sends ahead of its turn is kept."""
        while data := await self._reader.read(_CHUNK_BYTES):
            self._http.receive_data(data)
            if len(self._http.trailing_data[0]) > _MAX_HEAD_BYTES:
                return

    async def _answer(self, request: NativeRequest) -> None:
        try:
            async with self._upstream.open(request) as answer:
                if answer.headers.get("content-type", "").startswith(MEDIA_TYPE):
                    await self._pass_problem(answer)
                else:
                    await self._pass(answer)
        except (httpx.HTTPError, PortsideError) as error:
            _LOG.warning("a model request gave no whole answer: %s", type(error).__name__)
            if self._http.our_state is not h11.SEND_RESPONSE:
                raise ConnectionResetError from error  # half an answer must not look like a whole one
            await self._refuse(Refused(502, "model_error", "the orchestrator gave no answer; try again"))

    async def _pass(self, answer: httpx.Response) -> None:
        headers = [*returned(answer.headers.items()), ("transfer-encoding", "chunked")]
        await self._send(_response(answer.status_code, headers))
        async for chunk in answer.aiter_bytes():
            await self._send(h11.Data(data=chunk))
        await self._send(h11.EndOfMessage())

    async def _pass_problem(self, answer: httpx.Response) -> None:
        headers, body = for_sdk(Problem.model_validate_json(await answer.aread()))
        kept = [one for one in returned(answer.headers.items()) if one[0] == "retry-after"]
        await self._whole(answer.status_code, [*kept, *headers], body)

    async def _refuse(self, refused: Refused) -> None:
        if self._http.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            return
        headers, body = for_sdk(problem_of(refused))
        with suppress(ConnectionError):
            await self._whole(refused.status, [*headers, ("connection", "close")], body)

    async def _whole(self, status: int, headers: Sequence[Header], body: bytes) -> None:
        await self._send(_response(status, headers))
        await self._send(h11.Data(data=body))
        await self._send(h11.EndOfMessage())

    async def _next(self) -> object:
        """The next event of the request."""
        while True:
            event = self._http.next_event()
            if event is not h11.NEED_DATA:
                return event
            self._http.receive_data(await self._reader.read(_CHUNK_BYTES))

    async def _send(self, event: h11.Event) -> None:
        data = self._http.send(event)
        if data:
            self._writer.write(data)
            await self._writer.drain()


def _response(status: int, headers: Sequence[Header]) -> h11.Response:
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    return h11.Response(status_code=status, headers=raw)

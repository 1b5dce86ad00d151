"""A server behind a URL that speaks the older transport: one stream of events, and a POST for each message.

Revision 2024-11-05 had it, and servers in the field still do. The SDK's own client for it bounds events at
1 MiB and lets a refused POST wait for its timeout; so this one replaces it below the SDK's dispatcher.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from urllib.parse import urljoin, urlsplit

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest

from tool_registry.mcp.faults import Fault, HttpFault, refusal_of
from tool_registry.mcp.frames import MAX_MESSAGE_BYTES, parse_message
from tool_registry.mcp.transport import ServerUnreachable, Wire

CONNECT_TIMEOUT_S = 10.0
POST_TIMEOUT_S = 15.0
_QUEUED_MESSAGES = 256

_ToSession = MemoryObjectSendStream[SessionMessage | Exception]
_FromSession = MemoryObjectReceiveStream[SessionMessage]


class SseTransport:
    """Reaches a server that speaks HTTP with server-sent events.

    Args:
        url: where its stream of events is.
        headers: sent with every request to it, and to no other origin.
        auth: adds a token to every request, and gets one where it can.
    """

    kind = "sse"
    older = None

    def __init__(self, url: str, headers: Mapping[str, str], *, auth: httpx2.Auth | None = None) -> None:
        self._url = url
        self._headers = dict(headers)
        self._auth = auth

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Wire]:
        """Open the stream and learn where messages go; leaving closes it, which ends the session."""
        timeout = httpx2.Timeout(POST_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
        async with (
            httpx2.AsyncClient(headers=self._headers, timeout=timeout, auth=self._auth) as client,
            self._stream(client) as response,
            aclosing(_events(response)) as events,
        ):
            endpoint = await self._endpoint(events)
            to_session, read = anyio.create_memory_object_stream[SessionMessage | Exception](_QUEUED_MESSAGES)
            write, from_session = anyio.create_memory_object_stream[SessionMessage](_QUEUED_MESSAGES)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_read, events, to_session)
                tasks.start_soon(_Posts(client, endpoint, to_session).run, from_session)
                try:
                    yield Wire((read, write))
                finally:
                    tasks.cancel_scope.cancel()
                    for stream in (read, write, to_session, from_session):
                        stream.close()

    @asynccontextmanager
    async def _stream(self, client: httpx2.AsyncClient) -> AsyncGenerator[httpx2.Response]:
        accept = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
        silent = httpx2.Timeout(POST_TIMEOUT_S, connect=CONNECT_TIMEOUT_S, read=None)
        request = client.build_request("GET", self._url, headers=accept, timeout=silent)
        try:
            response = await client.send(request, stream=True)
        except httpx2.TransportError as error:
            raise ServerUnreachable(
                f"it can't be reached; check that it runs, and its `url`: {_text(error)}"
            ) from None
        try:
            if response.status_code >= 400:
                raise ServerUnreachable(refusal_of(response.status_code).detail)
            found = response.headers.get("content-type", "nothing").partition(";")[0].strip().lower()
            if response.status_code != 200 or found != "text/event-stream":
                raise ServerUnreachable(
                    f"it answered HTTP {response.status_code} with {found[:80]}, not a stream of events;"
                    " check the path of `url`, and whether its `type` is `http`"
                )
            yield response
        finally:
            await response.aclose()

    async def _endpoint(self, events: AsyncIterator[tuple[str, str]]) -> str:
        """Where messages go; it must be of the same origin, since it gets the same credentials."""
        async for kind, data in events:
            if kind == "endpoint":
                endpoint = urljoin(self._url, data)
                if _origin(endpoint) != _origin(self._url):
                    raise ServerUnreachable("it wants its messages sent to another origin, which is refused")
                return endpoint
        raise ServerUnreachable("its stream of events ended before it said where messages go")


class _Posts:
    """Sends each message as a POST; a refused one is the answer to its own request only."""

    def __init__(self, client: httpx2.AsyncClient, endpoint: str, to_session: _ToSession) -> None:
        self._client = client
        self._endpoint = endpoint
        self._to_session = to_session

    async def run(self, from_session: _FromSession) -> None:
        async with from_session:
            async for sent in from_session:
                fault = await self._post(sent)
                if fault is not None and isinstance(sent.message, JSONRPCRequest):
                    body = {"jsonrpc": "2.0", "id": sent.message.id, "error": fault.as_error()}
                    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                        await self._to_session.send(SessionMessage(JSONRPCError.model_validate(body)))

    async def _post(self, sent: SessionMessage) -> HttpFault | None:
        content = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
        try:
            response = await self._client.post(
                self._endpoint, content=content, headers={"content-type": "application/json"}
            )
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            return HttpFault(Fault.NOT_CONNECTED, f"it can't be reached: {_text(error)}")
        except httpx2.TransportError as error:
            return HttpFault(Fault.BROKEN, f"the connection broke: {_text(error)}")
        if response.status_code == 404:
            return HttpFault(Fault.LOST_SESSION, "it no longer knows the session", 404)
        if response.status_code >= 300:
            return refusal_of(response.status_code)
        return None


async def _read(events: AsyncIterator[tuple[str, str]], to_session: _ToSession) -> None:
    async with to_session:
        async for kind, data in events:
            message = parse_message(data.encode()) if kind == "message" else None
            if message is not None:
                try:
                    await to_session.send(SessionMessage(message))
                except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                    return


async def _events(response: httpx2.Response) -> AsyncGenerator[tuple[str, str]]:
    """Each event's kind and data, until the stream ends, however it does."""
    try:
        async for event in httpx2.EventSource(response, max_event_size=MAX_MESSAGE_BYTES):
            yield event.event or "message", event.data
    except (httpx2.TransportError, httpx2.SSEError):
        return  # the end of the stream is the end of the session; whoever waits hears of it


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port


def _text(error: Exception) -> str:
    return str(error)[:200] or type(error).__name__

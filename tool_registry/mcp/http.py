"""A server behind a URL: streamable HTTP through the SDK, with faults turned into answers.

The SDK ends the whole conversation for one failed POST and hides the status of most refusals. The layer
below its HTTP client turns both into JSON-RPC errors of the one request they belong to, and bounds bodies.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import httpx2
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client
from mcp_types import JSONRPCError

from tool_registry.mcp.faults import Fault, HttpFault, refusal_of
from tool_registry.mcp.frames import MAX_MESSAGE_BYTES, parse_message
from tool_registry.mcp.transport import Transport, Wire

CONNECT_TIMEOUT_S = 10.0
NOTE_TIMEOUT_S = 2.0
GOODBYE_TIMEOUT_S = 2.0
_MAX_REFUSAL_BYTES = 64 * 1024
_MAX_PARSED_BYTES = 64 * 1024
_FORM = "application/x-www-form-urlencoded"


class HttpTransport:
    """Reaches a streamable HTTP server.

    Args:
        url: the endpoint.
        headers: sent with every request to it, and to no other origin.
        answer_timeout_s: how long a response may be silent.
        auth: adds a token to every request, and gets one where it can.
        older: tried when the server refuses the first message with 400, 404 or 405.
        inner: the HTTP transport below; a connection pool of its own when None.
    """

    kind = "http"

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        *,
        answer_timeout_s: float,
        auth: httpx2.Auth | None = None,
        older: Transport | None = None,
        inner: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self.older = older
        self._url = url
        self._headers = dict(headers)
        self._answer_timeout_s = answer_timeout_s
        self._auth = auth
        self._inner = inner

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Wire]:
        """Reach the server; leaving ends the session."""
        pool = self._inner or httpx2.AsyncHTTPTransport(limits=httpx2.Limits(max_connections=200))
        timeout = httpx2.Timeout(CONNECT_TIMEOUT_S, read=self._answer_timeout_s)
        async with (
            httpx2.AsyncClient(
                transport=_FaultsAsAnswers(pool), headers=self._headers, timeout=timeout, auth=self._auth
            ) as client,
            streamable_http_client(
                self._url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES
            ) as streams,
        ):
            yield Wire(streams)


class _FaultsAsAnswers(httpx2.AsyncBaseTransport):
    """Answers every request, whatever happens to it."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.headers.get("content-type") == _FORM:
            return await self._token_request(request)
        _set_timeouts(request)
        try:
            response = await self._inner.handle_async_request(request)
            if request.method != "POST" or response.is_redirect:
                return response
            if response.status_code >= 400:
                return await _refusal(request, response)
            if response.headers.get("content-type", "").lower().startswith("application/json"):
                return await _whole(response)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            return _fault(
                503,
                Fault.NOT_CONNECTED,
                f"it can't be reached; check that it runs, and its `url`: {_text(error)}",
            )
        except (httpx2.TransportError, httpx2.DecodingError) as error:
            return _fault(503, Fault.BROKEN, f"the connection broke: {_text(error)}")
        return response

    async def _token_request(self, request: httpx2.Request) -> httpx2.Response:
        """A request to the authorisation server; one that does not answer has refused."""
        try:
            return await self._inner.handle_async_request(request)
        except httpx2.TransportError:
            return httpx2.Response(503)

    async def aclose(self) -> None:
        await self._inner.aclose()


def _set_timeouts(request: httpx2.Request) -> None:
    """The stream of notices may be silent; what has no answer may not take long.

    The SDK waits for a notification's response before it sends the next message.
    """
    timeouts = cast("dict[str, float | None]", dict(request.extensions.get("timeout") or {}))
    if request.method == "GET":
        timeouts["read"] = None
    elif request.method == "DELETE":
        timeouts.update(connect=GOODBYE_TIMEOUT_S, read=GOODBYE_TIMEOUT_S, pool=GOODBYE_TIMEOUT_S)
    elif not _awaits_answer(request.content):
        timeouts["read"] = NOTE_TIMEOUT_S
    request.extensions = {**request.extensions, "timeout": timeouts}


def _awaits_answer(content: bytes) -> bool:
    if len(content) > _MAX_PARSED_BYTES:
        return True
    body: Any = json.loads(content)
    return isinstance(body, dict) and "method" in body and "id" in body


async def _refusal(request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
    """A status of 400 or more: the server's own JSON-RPC error where it sent one, else what it means."""
    status = response.status_code
    body = await _bounded(response, _MAX_REFUSAL_BYTES)
    if status == 404 and MCP_SESSION_ID in request.headers:
        return _fault(status, Fault.LOST_SESSION, "it no longer knows the session")
    if status in {401, 403} and (challenge := response.headers.get("www-authenticate")):
        fault = refusal_of(status)
        return _fault(status, fault.kind, fault.detail, {"www-authenticate": challenge})
    message = parse_message(body) if body is not None else None
    if isinstance(message, JSONRPCError) and status != 401:
        return httpx2.Response(status, json=message.model_dump(mode="json"))
    fault = refusal_of(status)
    return _fault(status, fault.kind, fault.detail)


async def _whole(response: httpx2.Response) -> httpx2.Response:
    """A JSON answer, read to its end here, where a broken connection can still become an answer."""
    body = await _bounded(response, MAX_MESSAGE_BYTES)
    if body is None:
        return _fault(502, Fault.REFUSED, f"its answer has more than {MAX_MESSAGE_BYTES:,} bytes")
    message = parse_message(body)
    content = message.model_dump_json(by_alias=True).encode() if isinstance(message, JSONRPCError) else body
    kept = {
        name: value
        for name, value in response.headers.items()
        if name.lower() not in {"content-encoding", "content-length", "transfer-encoding"}
    }
    return httpx2.Response(response.status_code, headers=kept, content=content)


async def _bounded(response: httpx2.Response, limit_bytes: int) -> bytes | None:
    body = bytearray()
    try:
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > limit_bytes:
                return None
    finally:
        await response.aclose()
    return bytes(body)


def _fault(
    status: int, kind: Fault, detail: str, headers: Mapping[str, str] | None = None
) -> httpx2.Response:
    error = HttpFault(kind, detail, status).as_error()
    return httpx2.Response(
        status, headers=dict(headers or {}), json={"jsonrpc": "2.0", "id": None, "error": error}
    )


def _text(error: Exception) -> str:
    return str(error)[:200] or type(error).__name__

"""Request bodies, bounded."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from fastapi import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestrator.errors import BadRequest, TooLarge
from orchestrator.http.problems import problem_of, problem_response
from worker.protocol.problems import STATUS

MAX_BODY_BYTES = 16 * 1024 * 1024
_MAX_DIGITS = 20


def too_large(limit_bytes: int) -> TooLarge:
    """The error for a body over its bound."""
    return TooLarge(f"the body has more than {limit_bytes:,} bytes; send less at once")


def stated_length(scope: Scope) -> int | None:
    """The `Content-Length`, when there is one that is a number."""
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value) if value.isdigit() and len(value) < _MAX_DIGITS else None
    return None


async def read_body(scope: Scope, receive: Receive, limit_bytes: int = MAX_BODY_BYTES) -> bytes:
    """The whole body in one pass.

    Raises:
        TooLarge: it has more than `limit_bytes`.
        BadRequest: the connection ended before it did.
    """
    length = stated_length(scope)
    if length is not None and length > limit_bytes:
        raise too_large(limit_bytes)
    message = await _part(receive)
    body: bytes = message.get("body", b"")
    if not message.get("more_body"):
        if len(body) > limit_bytes:
            raise too_large(limit_bytes)
        return body
    chunks, size = [body], len(body)
    while message.get("more_body"):
        message = await _part(receive)
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        if size > limit_bytes:
            raise too_large(limit_bytes)
        chunks.append(chunk)
    return b"".join(chunks)


async def _part(receive: Receive) -> Message:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise BadRequest("the connection ended before the body was whole")
    return message


async def stream_body(request: Request) -> AsyncIterator[bytes]:
    """The body as it comes; whoever reads it bounds it."""
    async for chunk in request.stream():
        if chunk:
            yield chunk


class BodyLimit:
    """Pure ASGI: refuses bodies over the bound.

    Args:
        app: a FastAPI application.
        limit_of: the bound of a path in bytes; None where the body is a stream that its reader bounds.
    """

    def __init__(self, app: ASGIApp, limit_of: Callable[[str], int | None]) -> None:
        self._app = app
        self._limit_of = limit_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on with a counted body."""
        limit_bytes = self._limit_of(scope["path"]) if scope["type"] == "http" else None
        if limit_bytes is None:
            await self._app(scope, receive, send)
            return
        length = stated_length(scope)
        if length is not None and length > limit_bytes:
            await problem_response(problem_of(too_large(limit_bytes)))(scope, receive, send)
            return
        size = 0

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > limit_bytes:
                # The one exception that FastAPI passes on when it reads a body.
                raise HTTPException(STATUS[TooLarge.code], too_large(limit_bytes).message)
            return message

        await self._app(scope, counted, send)

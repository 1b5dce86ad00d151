"""Request bodies, bounded."""

from __future__ import annotations

from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestrator.errors import TooLarge
from orchestrator.http.problems import problem_of, problem_response

MAX_BODY_BYTES = 16 * 1024 * 1024


def too_large(limit_bytes: int) -> TooLarge:
    """The error for a body over its bound."""
    return TooLarge(f"the body has more than {limit_bytes:,} bytes; send less at once")


def stated_length(scope: Scope) -> int | None:
    """The `Content-Length`, when there is one that is a number."""
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value) if value.isdigit() else None
    return None


async def read_body(scope: Scope, receive: Receive, limit_bytes: int = MAX_BODY_BYTES) -> bytes:
    """The whole body in one pass.

    Raises:
        TooLarge: it has more than `limit_bytes`.
    """
    length = stated_length(scope)
    if length is not None and length > limit_bytes:
        raise too_large(limit_bytes)
    message = await receive()
    body: bytes = message.get("body", b"")
    if not message.get("more_body"):
        if len(body) > limit_bytes:
            raise too_large(limit_bytes)
        return body
    chunks, size = [body], len(body)
    while message.get("more_body"):
        message = await receive()
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        if size > limit_bytes:
            raise too_large(limit_bytes)
        chunks.append(chunk)
    return b"".join(chunks)


async def stream_body(request: Request) -> AsyncIterator[bytes]:
    """The body as it comes; whoever reads it bounds it."""
    async for chunk in request.stream():
        if chunk:
            yield chunk


class BodyLimit:
    """Pure ASGI: refuses bodies over the bound, but for the paths that stream theirs."""

    def __init__(
        self, app: ASGIApp, *, limit_bytes: int = MAX_BODY_BYTES, streamed: tuple[str, ...] = ()
    ) -> None:
        self._app = app
        self._limit_bytes = limit_bytes
        self._streamed = streamed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on with a counted body."""
        if scope["type"] != "http" or scope["path"].endswith(self._streamed):
            await self._app(scope, receive, send)
            return
        length = stated_length(scope)
        if length is not None and length > self._limit_bytes:
            await problem_response(problem_of(too_large(self._limit_bytes)))(scope, receive, send)
            return
        size = 0

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self._limit_bytes:
                raise too_large(self._limit_bytes)
            return message

        await self._app(scope, counted, send)

"""JSON-RPC messages out of bytes, tolerant where servers are known to be sloppy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pydantic
import pydantic_core
from mcp_types import (
    INTERNAL_ERROR,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

MAX_MESSAGE_BYTES = 64 * 1024 * 1024
_KEPT_OF_DROPPED_BYTES = 1024


class LineSplitter:
    """Cuts a byte stream into lines. A line over the limit is dropped; its first bytes stand for it."""

    def __init__(self, limit_bytes: int = MAX_MESSAGE_BYTES) -> None:
        self._limit = limit_bytes
        self._pending = bytearray()
        self._dropping = False

    @property
    def held_bytes(self) -> int:
        """How much of an unfinished line is held."""
        return len(self._pending)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The lines that this chunk completes, without their ends."""
        first, *others = data.split(b"\n")
        self._take(first)
        for start in others:
            yield bytes(self._pending)
            self._pending.clear()
            self._dropping = False
            self._take(start)

    def _take(self, part: bytes) -> None:
        if self._dropping:
            return
        self._pending += part
        if len(self._pending) > self._limit:
            self._dropping = True
            del self._pending[_KEPT_OF_DROPPED_BYTES:]


def parse_message(data: bytes) -> JSONRPCMessage | None:
    """One JSON-RPC message; None when the bytes are none.

    An error object without `code` or `message`, which the specification forbids and servers send, is
    completed, since its request would wait for ever otherwise.
    """
    try:
        value: Any = pydantic_core.from_json(data)
        if not isinstance(value, dict):
            return None
        body = cast("dict[str, Any]", value)
        if "method" in body:
            return (JSONRPCRequest if "id" in body else JSONRPCNotification).model_validate(body)
        if "error" in body:
            return JSONRPCError.model_validate({"id": None, **body, "error": _completed(body["error"])})
        return JSONRPCResponse.model_validate(body)
    except (ValueError, RecursionError, pydantic.ValidationError):
        return None


def _completed(error: Any) -> dict[str, Any]:
    given = cast("dict[str, Any]", error) if isinstance(error, dict) else {"message": error}
    code, message = given.get("code"), given.get("message")
    return {
        "code": code if isinstance(code, int) else INTERNAL_ERROR,
        "message": message if isinstance(message, str) and message else "the server gave no message",
        "data": given.get("data"),
    }

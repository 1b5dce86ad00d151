"""JSON-RPC over lines, as the two streams that the MCP SDK reads and writes.

The SDK's own transport reads lines of any length and lets NaN and double keys pass; here both are refused.
What is written keeps the key order and the number forms of the tools' owners.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from tool_registry.arguments import strict_json

MAX_FRAME_BYTES = 16 * 1024 * 1024
_CHUNK_BYTES = 256 * 1024
_LAST_WORD_S = 1.0

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]


class FrameRefused(Exception):
    """A line that is no message; `code` is JSON-RPC's."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


async def lines(reader: asyncio.StreamReader, limit_bytes: int) -> AsyncIterator[bytes | FrameRefused]:
    """Every line; in the place of one over the limit, which is not kept, its refusal."""
    held, skipping = bytearray(), False
    while chunk := await reader.read(_CHUNK_BYTES):
        held += chunk
        while (end := held.find(b"\n")) >= 0:
            line = bytes(held[:end])
            del held[: end + 1]
            if skipping or len(line) > limit_bytes:
                skipping = False
                yield _too_long(limit_bytes)
            elif line.strip():
                yield line
        if len(held) > limit_bytes:
            held.clear()
            skipping = True
    if held.strip() and not skipping:
        yield bytes(held)


def message_of(line: bytes) -> SessionMessage:
    """The message in a line.

    Raises:
        FrameRefused: it is not JSON, strictly read, or not JSON-RPC.
    """
    try:
        value = strict_json(line.decode())
    except ValueError as error:
        raise FrameRefused(mcp_types.PARSE_ERROR, f"not valid JSON: {error}") from None
    try:
        message = mcp_types.jsonrpc_message_adapter.validate_python(value, by_name=False)
    except ValidationError:
        raise FrameRefused(mcp_types.INVALID_REQUEST, "not a JSON-RPC 2.0 message") from None
    return SessionMessage(message)


def frame(message: Any) -> bytes:
    """A JSON value as a line."""
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace") + b"\n"


@asynccontextmanager
async def message_streams(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, limit_bytes: int = MAX_FRAME_BYTES
) -> AsyncGenerator[tuple[Incoming, Outgoing]]:
    """The messages of a connection, both ways, for as long as the context lasts."""
    to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, from_server = anyio.create_memory_object_stream[SessionMessage](0)

    async def read() -> None:
        async with to_server:
            async for line in lines(reader, limit_bytes):
                try:
                    await to_server.send(_read(line))
                except FrameRefused as refused:
                    error = {"code": refused.code, "message": str(refused)}
                    await _write(writer, {"jsonrpc": "2.0", "id": None, "error": error})
                except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                    return  # the session is over

    written = asyncio.Event()

    async def write() -> None:
        try:
            async with from_server:
                async for sent in from_server:
                    await _write(writer, sent.message.model_dump(by_alias=True, exclude_unset=True))
        finally:
            written.set()

    async with anyio.create_task_group() as tasks, incoming, outgoing:
        tasks.start_soon(_until_gone, read)
        tasks.start_soon(_until_gone, write)
        try:
            yield incoming, outgoing
        finally:
            outgoing.close()
            with anyio.move_on_after(_LAST_WORD_S, shield=True):
                await written.wait()
            tasks.cancel_scope.cancel()


def _read(line: bytes | FrameRefused) -> SessionMessage:
    if isinstance(line, FrameRefused):
        raise line
    return message_of(line)


async def _until_gone(work: Any) -> None:
    """A client that is gone ends its own connection only."""
    try:
        await work()
    except ConnectionError:
        return


async def _write(writer: asyncio.StreamWriter, message: Any) -> None:
    writer.write(frame(message))
    await writer.drain()


def _too_long(limit_bytes: int) -> FrameRefused:
    return FrameRefused(mcp_types.INVALID_REQUEST, f"a message has at most {limit_bytes:,} bytes; send less")

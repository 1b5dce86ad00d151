"""A hand-written server of the older HTTP transport, which can misbehave: a stream, and a POST for each message."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from tests.fakes.mcp_over_http import HttpFake, Reply, Request, write_reply
from tests.fakes.mcp_servers import Message, Server


class SseServer(HttpFake):
    """A fake over a stream of events.

    Attributes:
        endpoint: what the stream's first event says; "" sends none.
    """

    path = "/sse"

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.endpoint = "/messages?session_id=1"
        self._streams: list[asyncio.StreamWriter] = []

    def cut(self) -> None:
        """End every stream."""
        for stream in self._streams:
            stream.close()
        self._streams.clear()

    async def answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        if request.method == "GET":
            await self._stream(writer)
        else:
            await write_reply(writer, Reply(202))
            await self._push(self.server.answer(request.body))

    async def _stream(self, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 -\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        if self.endpoint:
            writer.write(f": hello\n\nevent: endpoint\ndata: {self.endpoint}\n\n".encode())
        self._streams.append(writer)
        await writer.drain()

    async def _push(self, answers: Any) -> None:
        for answer in answers:
            message: Message = answer
            if self._streams:  # the newest: a client that came back has left the older ones
                self._streams[-1].write(b"event: message\ndata: " + json.dumps(message).encode() + b"\n\n")
                await self._streams[-1].drain()

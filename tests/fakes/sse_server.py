"""A hand-written server of the older HTTP transport, which can misbehave: a stream, and a POST for each message."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, Self

from tests.fakes.mcp_servers import Message, Reply, Request, Server, read_request, write_reply


class SseServer:
    """Serves a fake on a free local port.

    Attributes:
        requests: everything that came in.
        endpoint: what the stream's first event says; "" sends none.
        intercept: looks at a request first; its reply replaces the usual one.
        answer: makes what a message is answered with; None sends nothing.
    """

    def __init__(self, server: Server) -> None:
        self.server = server
        self.requests: list[Request] = []
        self.endpoint = "/messages?session_id=1"
        self.intercept: Callable[[Request], Reply | None] = lambda _request: None
        self._listener: asyncio.Server | None = None
        self._streams: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/sse"

    async def __aenter__(self) -> Self:
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._listener.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_exception: object) -> None:
        assert self._listener is not None
        self._listener.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """End every stream."""
        for stream in self._streams:
            stream.close()
        self._streams.clear()

    def methods(self) -> list[str]:
        """The JSON-RPC methods that came in, in order."""
        return [each.body["method"] for each in self.requests if each.body and "method" in each.body]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while (request := await read_request(reader)) is not None:
                self.requests.append(request)
                reply = self.intercept(request)
                if reply is not None and reply.drop:
                    return
                if reply is not None:
                    await write_reply(writer, reply)
                elif request.method == "GET":
                    await self._stream(writer)
                else:
                    await write_reply(writer, Reply(202))
                    await self._push(self.server.answer(request.body))
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            self._tasks.discard(task)
            writer.close()

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

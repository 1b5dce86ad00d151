"""Hand-written MCP servers over HTTP, inside the test's loop."""

from __future__ import annotations

import asyncio
import json
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

from tests.fakes.mcp_servers import Server


@dataclass
class Request:
    """One HTTP request as it came in."""

    method: str
    headers: dict[str, str]
    body: Any


@dataclass
class Reply:
    """What goes back; `drop` closes the connection instead, `hang` says nothing until the end."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    drop: bool = False
    hang: bool = False


class HttpFake:
    """Takes connections on a free local port, and every request of each.

    Attributes:
        requests: everything that came in.
        intercept: looks at a request first; its reply replaces the usual one.
    """

    path = "/mcp"

    def __init__(self, server: Server) -> None:
        self.server = server
        self.requests: list[Request] = []
        self.intercept: Callable[[Request], Reply | None] = lambda _request: None
        self._listener: asyncio.Server | None = None
        self._serving: set[asyncio.Task[Any]] = set()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.path}"

    async def __aenter__(self) -> Self:
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._listener.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_exception: object) -> None:
        assert self._listener is not None
        self._listener.close()
        for task in tuple(self._serving):
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    def methods(self) -> list[str]:
        """The JSON-RPC methods that came in, in order."""
        return [each.body["method"] for each in self.requests if each.body and "method" in each.body]

    @abstractmethod
    async def answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        """Answer a request that nothing intercepted."""

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            while (request := await read_request(reader)) is not None:
                self.requests.append(request)
                reply = self.intercept(request)
                if reply is None:
                    await self.answer(request, writer)
                elif reply.drop:
                    return
                elif reply.hang:
                    await asyncio.Event().wait()
                else:
                    await write_reply(writer, reply)
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            self._serving.discard(task)
            writer.close()


class HttpServer(HttpFake):
    """A fake over streamable HTTP, with JSON answers.

    Attributes:
        sessions: the session ids it knows; emptied by `forget`, as a restart does.
    """

    def __init__(self, server: Server, *, with_sessions: bool = True) -> None:
        super().__init__(server)
        self.sessions: set[str] = set()
        self._with_sessions = with_sessions
        self._issued = 0

    def forget(self) -> None:
        self.sessions.clear()

    async def answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        await write_reply(writer, self._reply(request))

    def _reply(self, request: Request) -> Reply:
        if request.method != "POST":
            return Reply(405 if request.method == "GET" else 200)
        known = request.headers.get("mcp-session-id")
        first = request.body.get("method") == "initialize"
        if self._with_sessions and not first and known not in self.sessions:
            return Reply(404)
        answers = [
            each for each in self.server.answer(request.body) if isinstance(each, dict) and "id" in each
        ]
        if not answers:
            return Reply(202)
        headers = {"content-type": "application/json"}
        if first and self._with_sessions:
            self._issued += 1
            headers["mcp-session-id"] = f"session-{self._issued}"
            self.sessions.add(f"session-{self._issued}")
        return Reply(200, headers, json.dumps(answers[-1]).encode())


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode().strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(first.split()[0], headers, json.loads(body) if body else None)


async def write_reply(writer: asyncio.StreamWriter, reply: Reply) -> None:
    headers = {"content-length": str(len(reply.body)), **reply.headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"HTTP/1.1 {reply.status} -\r\n{head}\r\n".encode() + reply.body)
    await writer.drain()

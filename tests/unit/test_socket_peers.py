"""PD-75: peers that are slow, silent, deaf, endless or many are bounded, and nobody waits for them."""

from __future__ import annotations

import asyncio
import json
import resource
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvloop
from starlette.types import Receive, Scope, Send

from orchestrator.adapters.sockets.bounded_protocol import MAX_HEAD_BYTES, MAX_HEADERS
from orchestrator.adapters.sockets.http_listener import HttpListener
from orchestrator.adapters.sockets.peers import PATIENT_LOOKS
from orchestrator.cli.session import allow_open_files
from tests.support.deadline import eventually, within
from worker.protocol.problems import Problem

NewLoop = Callable[[], asyncio.AbstractEventLoop]
Peer = tuple[asyncio.StreamReader, asyncio.StreamWriter]

LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]
GET = b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n"
CHUNKED = b"POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    size, message = 0, await receive()
    while message.get("more_body"):
        size, message = size + len(message["body"]), await receive()
    if scope["path"] == "/held":
        while message["type"] != "http.disconnect":
            message = await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(1000 if scope["path"] == "/big" else 0):
        await send({"type": "http.response.body", "body": b"x" * 65_536, "more_body": True})
    await send({"type": "http.response.body", "body": b"%d" % (size + len(message.get("body", b"")))})


async def no_tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


class Listening:
    """A listener, and what connects to it."""

    def __init__(self, listener: HttpListener, path: Path) -> None:
        self.listener = listener
        self.path = path
        self.opened: list[Peer] = []

    async def peer(self, *pieces: bytes) -> Peer:
        peer = await asyncio.open_unix_connection(str(self.path))
        self.opened.append(peer)
        for piece in pieces:
            peer[1].write(piece)
            await peer[1].drain()
        return peer

    async def look(self, times: int, between: Callable[[], None] = lambda: None) -> None:
        """Look so often; what was sent before is there by then, as an answer to another request shows."""
        for _ in range(times):
            between()
            assert b" 200 " in await within(60, (await self.peer(GET))[0].readuntil(b"\r\n"))
            self.listener.peers.look()


@asynccontextmanager
async def listening(directory: Path, *, most: int = 128, tunnel: bool = False) -> AsyncGenerator[Listening]:
    path = directory / str(tunnel)
    listener = HttpListener(app, no_tunnel if tunnel else None, most_peers=most)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    bound.bind(str(path))
    await listener.open(bound)
    found = Listening(listener, path)
    try:
        yield found
    finally:
        for _, writer in found.opened:
            writer.transport.abort()
        await within(60, listener.close())


def on_each_loop(test: Callable[[Path], Awaitable[None]]) -> Callable[[Path, NewLoop], None]:
    @pytest.mark.parametrize("new_loop", LOOPS)
    def run(tmp_path: Path, new_loop: NewLoop) -> None:
        async def whole() -> None:
            await test(tmp_path)

        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(whole())

    return run


SLOW = {
    "says nothing": b"",
    "never ends its head": b"GET /x HTTP/1.1\r\nA: ",
    "never ends its body": b"POST /x HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n",
    "never ends its chunks": CHUNKED + b"fffff\r\n",
    "sends on after its answer, and never ends that": GET + b"GET /x HTTP/1.1\r\nA: ",
}


@on_each_loop
async def test_one_that_sends_a_byte_a_look_is_dropped(directory: Path) -> None:
    for tunnel in (False, True):
        async with listening(directory, tunnel=tunnel) as found:
            slow = [await found.peer(first) for first in SLOW.values()]

            def drip(slow: list[Peer] = slow) -> None:
                for _, writer in slow[1:]:
                    writer.write(b"a")

            await found.look(PATIENT_LOOKS + 1, drip)
            for (reader, _), what in zip(slow, SLOW, strict=True):
                with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                    await within(60, reader.readuntil(what.encode()))


@on_each_loop
async def test_one_that_never_reads_its_answer_is_dropped(directory: Path) -> None:
    async with listening(directory) as found:
        await found.peer(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n")
        await eventually(lambda: len(found.listener.peers) == 1, 60)
        await found.look(PATIENT_LOOKS + 1)
        for _, writer in found.opened[1:]:
            writer.close()
        await eventually(lambda: len(found.listener.peers) == 0, 60)


@on_each_loop
async def test_one_that_waits_for_its_answer_or_sends_a_little_is_not_late(directory: Path) -> None:
    async with listening(directory) as found:
        waits = await found.peer(b"GET /held HTTP/1.1\r\nHost: a\r\n\r\n")
        sends = await found.peer(b"POST /x HTTP/1.1\r\nContent-Length: 20000\r\n\r\n")
        await found.look(2 * PATIENT_LOOKS, lambda: sends[1].write(b"x" * 2000))
        sends[1].write(b"x" * 4000)
        assert b" 200 " in await within(60, sends[0].readuntil(b"20000"))
        assert not waits[0].at_eof()


@on_each_loop
async def test_a_head_without_end_is_refused_whole_and_dropped_in_a_trailer(directory: Path) -> None:
    async with listening(directory) as found:
        endless = b"x: " + b"y" * MAX_HEAD_BYTES
        many = b"a: b\r\n" * (MAX_HEADERS + 1) + b"\r\n"
        for head, said in ((endless, "65,536 bytes"), (many, f"{MAX_HEADERS} headers"), (b"\0\r\n", "HTTP")):
            reader, _ = await found.peer(b"GET /x HTTP/1.1\r\n" + head)
            status, _, body = (await within(60, reader.read())).partition(b"\r\n\r\n")
            assert status.startswith(b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/problem+json")
            assert said in Problem.model_validate_json(body).detail
        reader, writer = await found.peer(CHUNKED.replace(b"/x", b"/held") + b"1\r\na\r\n0\r\n")
        with pytest.raises((ConnectionError, RuntimeError)):  # noqa: PT012 - whichever write hears of it
            while True:
                writer.write(endless)
                await within(60, writer.drain())
                await asyncio.sleep(0)
        assert reader.at_eof() or reader.exception()


@on_each_loop
async def test_requests_ahead_of_the_answers_are_bounded(directory: Path) -> None:
    async with listening(directory) as found:
        (reader, _), (few, _) = await found.peer(GET * 5000), await found.peer(GET * 5)
        assert await within(60, reader.read()) == b""
        for _ in range(5):
            assert b" 200 " in await within(60, few.readuntil(b"0\r\n\r\n"))


@on_each_loop
async def test_one_too_many_hears_so_and_has_room_when_another_leaves(directory: Path) -> None:
    for tunnel in (False, True):
        async with listening(directory, most=3, tunnel=tunnel) as found:
            held = [await found.peer(b"GET /held") for _ in range(3)]
            await eventually(lambda found=found: len(found.listener.peers) == 3, 60)
            answer = await within(60, (await found.peer())[0].read())
            assert b" 503 " in answer
            problem = json.loads(answer.partition(b"\r\n\r\n")[2])
            assert (Problem(**problem).code, problem["retryable"]) == ("not_ready", True)
            held[0][1].close()
            await eventually(lambda found=found: len(found.listener.peers) == 2, 60)
            assert b" 200 " in await within(60, (await found.peer(GET))[0].readuntil(b"\r\n"))


def test_an_orchestrator_may_open_as_many_files_as_the_machine_lets_it() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, before[1]))
    try:
        allow_open_files(1024)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 1024
        allow_open_files(600)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 1024
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)

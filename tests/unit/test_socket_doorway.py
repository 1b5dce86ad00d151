"""PD-70: a job's socket tells tunnels from requests by their first bytes, on either event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop
from starlette.types import Receive, Scope, Send

from orchestrator.adapters.sockets.unix import UnixSocket
from tests.support.deadline import within

LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": scope["path"].encode()})


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1000):
        writer.write(data)


async def answered(path: Path, *pieces: bytes, until: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(str(path))
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0)
    answer = await within(5, reader.readuntil(until))
    writer.close()
    return answer


async def told_apart(path: Path) -> None:
    socket = UnixSocket(app, path, mode=0o600, tunnel=echo)
    await socket.open()
    try:
        assert await answered(path, b"CONNECT a:1\n", until=b"\n") == b"CONNECT a:1\n"
        assert await answered(path, b"CON", b"NECT ", b"a:1\n", until=b"\n") == b"CONNECT a:1\n"
        for pieces in ([b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n"], [b"G", b"ET /x HTTP/1.1\r\nHost: a\r\n\r\n"]):
            assert b" 200 " in await answered(path, *pieces, until=b"/x")
        # What only begins like the word is no tunnel; the app's own parser says so.
        assert b" 400 " in await answered(path, b"CONNECTED\r\n\r\n", until=b"\r\n")
    finally:
        await socket.close()


async def all_ended(path: Path) -> None:
    socket = UnixSocket(app, path, mode=0o600, tunnel=echo)
    await socket.open()
    silent, silent_writer = await asyncio.open_unix_connection(str(path))
    tunnel, tunnel_writer = await asyncio.open_unix_connection(str(path))
    tunnel_writer.write(b"CONNECT \n")
    await within(5, tunnel.readline())
    await within(5, socket.close())
    assert await within(5, silent.read()) == b""
    assert await within(5, tunnel.read()) == b""
    silent_writer.close()
    tunnel_writer.close()


@pytest.mark.parametrize("new_loop", LOOPS)
def test_a_tunnel_begins_with_the_word_and_all_else_is_a_request(
    tmp_path: Path, new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(told_apart(tmp_path / "s"))


@pytest.mark.parametrize("new_loop", LOOPS)
def test_closing_ends_tunnels_and_those_who_said_nothing(
    tmp_path: Path, new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(all_ended(tmp_path / "s"))

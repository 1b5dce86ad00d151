"""Lines and messages out of a server's bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse

from tool_registry.mcp.frames import LineSplitter, parse_message
from tool_registry.mcp.log import ServerLog


@given(st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b"")), max_size=8), st.data())
def test_lines_come_out_whole_however_they_are_cut(lines: list[bytes], data: st.DataObject):
    stream = b"".join(line + b"\n" for line in lines)
    splitter = LineSplitter()
    found: list[bytes] = []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found.extend(splitter.feed(stream[:size]))
        stream = stream[size:]
    assert found == lines


def test_a_line_over_the_limit_is_dropped_and_the_next_one_read():
    """BR-066: memory stays bounded by the limit."""
    splitter = LineSplitter(limit_bytes=10_000)
    found: list[bytes] = []
    for _ in range(100):
        found.extend(splitter.feed(b"x" * 5_000))
        assert splitter.held_bytes <= 15_000
    found.extend(splitter.feed(b"\nnext\n"))
    assert [len(line) for line in found] == [1024, 4]
    assert found[1] == b"next"


@pytest.mark.parametrize(
    "line",
    [b"", b"Starting", b"\xff\xfe", b"123", b'"text"', b"[]", b'{"hello":1}', b"[" * 100_000, b'{"id":1}'],
)
def test_noise_is_no_message(line: bytes):
    """BR-066."""
    assert parse_message(line) is None


def test_messages_are_told_apart():
    assert isinstance(parse_message(b'{"jsonrpc":"2.0","id":1,"result":{}}'), JSONRPCResponse)
    assert isinstance(parse_message(b'{"jsonrpc":"2.0","id":"a","method":"ping"}'), JSONRPCRequest)


@pytest.mark.parametrize("error", [b"{}", b"null", b'"broken"', b'{"code":"E1","message":7}'])
def test_an_error_that_lacks_its_parts_is_completed(error: bytes):
    """BR-062: its request would wait for ever otherwise."""
    message = parse_message(b'{"jsonrpc":"2.0","id":1,"error":' + error + b"}")
    assert isinstance(message, JSONRPCError)
    assert message.error.code == -32603


def test_what_a_server_wrote_is_shown_without_its_secrets():
    """BR-050, BR-071: in stderr lines and in noise."""
    log = ServerLog("s")
    log.hide({"tok-12345", "1"})
    log.add("using tok-12345 1 time")
    log.add_noise(b"token=tok-12345")
    assert log.tail() == "using *** 1 time"
    assert "tok-12345" not in log.noise()


def test_the_log_is_bounded():
    log = ServerLog("s")
    for number in range(1_000):
        log.add(f"{number} " + "x" * 5_000)
    assert len(log.tail(1_000).splitlines()) == 200
    assert len(log.tail(1)) == 1_000

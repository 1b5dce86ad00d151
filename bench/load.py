"""A closed loop of callers over keep-alive connections; every answer is checked."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Iterator
from typing import Any, cast

from bench.process import Address

_BODIES = 16
_PATIENCE_S = 30.0


class WrongAnswer(Exception):
    """A server answered something else than it should have."""


class Workload:
    """Calls of one tool: rotating bodies, each call under an Idempotency-Key of its own.

    Args:
        fixed: every answer is this one; None has each answer carry its own call's text.
    """

    def __init__(self, address: Address, tool_name: str, *, fixed: bytes | None = None) -> None:
        self.socket = address.socket
        self._texts = [f"text number {number:02}" for number in range(_BODIES)]
        self._requests = [_request(address, tool_name, text) for text in self._texts]
        self._fixed = fixed
        self._keys = itertools.count()

    def calls(self) -> Iterator[tuple[int, bytes]]:
        """Requests for ever, each with the number of its text."""
        for number in itertools.cycle(range(_BODIES)):
            head, body = self._requests[number]
            yield number, b"%s%d\r\n\r\n%s" % (head, next(self._keys), body)

    async def first_answer(self) -> bytes:
        """The body of one answer."""
        reader, writer = await asyncio.open_unix_connection(self.socket)
        writer.write(next(self.calls())[1])
        head = await reader.readuntil(b"\r\n\r\n")
        body = await reader.readexactly(_length(head))
        writer.close()
        self.check(0, head[9:12], body)
        return body

    def check(self, number: int, status: bytes, body: bytes) -> None:
        """Compare one answer with its call.

        Raises:
            WrongAnswer: it is another call's, or none.
        """
        if self._fixed is not None:
            right = body == self._fixed
        else:
            right = status == b"200" and _result(body) == {"text": self._texts[number]}
        if not right:
            raise WrongAnswer(f"{status.decode()} {body[:500]!r}")


def _result(body: bytes) -> Any:
    output = json.loads(body)["output"]
    return None if output["is_error"] else output["result"]


def _request(address: Address, tool_name: str, text: str) -> tuple[bytes, bytes]:
    # compact, as the worker's client writes it
    body = json.dumps({"tool_name": tool_name, "params": {"text": text}}, separators=(",", ":")).encode()
    head = (
        f"POST /worker/{address.job_id}/tools/execute HTTP/1.1\r\n"
        f"Host: portside\r\nAccept: */*\r\nAccept-Encoding: gzip, deflate\r\nConnection: keep-alive\r\n"
        f"User-Agent: bench\r\nAuthorization: Bearer {address.token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nIdempotency-Key: {tool_name}-"
    )
    return head.encode(), body


class _Caller(asyncio.Protocol):
    """One connection: sends a call, waits for the answer, sends the next."""

    def __init__(self, workload: Workload, ends_at: float) -> None:
        self._workload = workload
        self._calls = workload.calls()
        self._ends_at = ends_at
        self._buffer = b""
        self._number = 0
        self.done = asyncio.get_running_loop().create_future()
        self.count = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but name
        self._send()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        if not found or len(rest) < _length(head):
            return
        self._buffer = b""
        try:
            self._workload.check(self._number, head[9:12], rest)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with an answer ends the run
            self._end(error)
            return
        self.count += 1
        if time.monotonic() >= self._ends_at:
            self._end(None)
        else:
            self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(exc or WrongAnswer("the server closed the connection"))

    def _send(self) -> None:
        self._number, request = next(self._calls)
        self._transport.write(request)

    def _end(self, error: Exception | None) -> None:
        if self.done.done():
            return
        if error is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(error)
        self._transport.close()


def _length(head: bytes) -> int:
    _, _, value = head.lower().partition(b"content-length: ")
    return int(value.partition(b"\r\n")[0])


async def call(workload: Workload, *, callers: int, seconds: float) -> tuple[int, float]:
    """Keep `callers` calls under way.

    Args:
        workload: what to call.
        callers: connections, each with one call at a time.
        seconds: how long.

    Returns:
        The calls that were answered, and the seconds they took.

    Raises:
        WrongAnswer, OSError: the first thing that went wrong.
    """
    loop = asyncio.get_running_loop()
    started = time.monotonic()
    connected = [
        await loop.create_unix_connection(lambda: _Caller(workload, started + seconds), workload.socket)
        for _ in range(callers)
    ]
    protocols = [protocol for _, protocol in connected]
    async with asyncio.timeout(seconds + _PATIENCE_S):
        await asyncio.gather(*(protocol.done for protocol in protocols))
    return sum(protocol.count for protocol in protocols), time.monotonic() - started

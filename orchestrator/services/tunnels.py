"""Two connections joined: what comes from one goes to the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress

from orchestrator.ports.egress import Way

_CHUNK_BYTES = 64 * 1024


class Joined:
    """Carries bytes both ways until both ends are through, or nothing moves for too long.

    Args:
        one: an end, as `other` is.
        idle_s: how long nothing may move.
        spend: counts bytes that are carried; False ends it.
    """

    def __init__(self, one: Way, other: Way, *, idle_s: float, spend: Callable[[int], bool]) -> None:
        self._one = one
        self._other = other
        self._idle_s = idle_s
        self._spend = spend
        self._moved_at = 0.0

    async def run(self) -> None:
        """Carry to the end; an end that breaks ends it."""
        loop = asyncio.get_running_loop()
        self._moved_at = loop.time()
        works: list[Coroutine[None, None, None]] = [
            self._carry(self._one[0], self._other[1]),
            self._carry(self._other[0], self._one[1]),
        ]
        carrying = asyncio.gather(*works)
        watching = asyncio.create_task(self._until_idle())
        try:
            await asyncio.wait({carrying, watching}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            carrying.cancel()
            watching.cancel()
            await asyncio.gather(carrying, watching, return_exceptions=True)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_CHUNK_BYTES):
            self._moved()
            if not self._spend(len(data)):
                raise ConnectionAbortedError
            writer.write(data)
            await writer.drain()
            self._moved()
        with suppress(OSError):  # the other way may have been closed from its end
            writer.write_eof()

    def _moved(self) -> None:
        self._moved_at = asyncio.get_running_loop().time()

    async def _until_idle(self) -> None:
        """Return when nothing has moved for too long, also because one end takes nothing."""
        loop = asyncio.get_running_loop()
        while (left_s := self._moved_at + self._idle_s - loop.time()) > 0:  # noqa: ASYNC110 - it waits for silence
            await asyncio.sleep(left_s)

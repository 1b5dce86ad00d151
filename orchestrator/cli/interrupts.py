"""Ctrl-C and SIGTERM as something to wait for, and the question that follows."""

from __future__ import annotations

import asyncio
import signal
import sys
from types import TracebackType
from typing import Self


class Interrupts:
    """Takes SIGINT and SIGTERM while the context lasts; enter it inside the event loop."""

    def __init__(self) -> None:
        self._came: asyncio.Queue[signal.Signals] = asyncio.Queue()
        self._interactive = sys.stdin.isatty() and sys.stdout.isatty()

    def __enter__(self) -> Self:
        loop = asyncio.get_running_loop()
        for one in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(one, self._came.put_nowait, one)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        loop = asyncio.get_running_loop()
        for one in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(one)

    async def next(self) -> bool:
        """Wait for one; answers whether there is a person to ask."""
        return await self._came.get() is signal.SIGINT and self._interactive

    async def ask(self, question: str) -> str:
        """A person's answer, one lowercase word; `c` when they press Ctrl-C again."""
        sys.stdout.write(question)
        sys.stdout.flush()
        answer = asyncio.ensure_future(_line())
        again = asyncio.ensure_future(self._came.get())
        try:
            await asyncio.wait({answer, again}, return_when=asyncio.FIRST_COMPLETED)
            return answer.result().strip().lower() if answer.done() else "c"
        finally:
            answer.cancel()
            again.cancel()


async def _line() -> str:
    """A line from the terminal; "" at its end."""
    loop = asyncio.get_running_loop()
    typed: asyncio.Future[None] = loop.create_future()
    loop.add_reader(sys.stdin.fileno(), lambda: typed.done() or typed.set_result(None))
    try:
        await typed
    finally:
        loop.remove_reader(sys.stdin.fileno())
    return sys.stdin.readline()

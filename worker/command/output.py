"""What a command writes, as events of the job while it runs."""

from __future__ import annotations

import asyncio
import codecs
import os
from collections import deque
from typing import Literal

from tool_registry.redaction import Redactor
from worker.events import EventSink
from worker.protocol.events import OutputData
from worker.tools.terminal_text import TerminalText

EVENT_CHARS = 12_000
MAX_EVENT_BYTES = 4 * 1024 * 1024
TAIL_CHARS = 8_000
_PAUSE_S = 0.25

Stream = Literal["stdout", "stderr"]


class OutputEvents(asyncio.Protocol):
    """Reads one stream of a command to its end and tells the timeline, whole lines where it can.

    After 4 MiB only the end is kept, and told at the end with what is missing between.

    Attributes:
        ended: every writer has closed the stream.
    """

    def __init__(self, stream: Stream, events: EventSink, redactor: Redactor) -> None:
        self._stream: Stream = stream
        self._events = events
        self._redactor = redactor
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._terminal = TerminalText()
        self._waiting = ""
        self._told_bytes = 0
        self._tail: deque[str] = deque()
        self._tail_chars = 0
        self._dropped_chars = 0
        self._transport: asyncio.BaseTransport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._finished = False
        self.ended = asyncio.Event()

    async def open_pipe(self) -> int:
        """Start reading; answers the writing end's descriptor, which the caller closes."""
        reading, writing = os.pipe()
        await asyncio.get_running_loop().connect_read_pipe(lambda: self, os.fdopen(reading, "rb", 0))
        return writing

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop: the pipe is being read."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Called by the loop: a piece came."""
        self._take(self._terminal.feed(self._decoder.decode(data)))
        if self._timer is None and not self._finished:
            self._timer = asyncio.get_running_loop().call_later(_PAUSE_S, self._pause_over)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the loop: every writer has closed the pipe, or we did."""
        self.ended.set()

    def close(self) -> None:
        """Stop reading."""
        if self._transport is not None:
            self._transport.close()

    def finish(self) -> str:
        """Tell what is left; answers the end of the stream's text."""
        if not self._finished:
            self._finished = True
            if self._timer is not None:
                self._timer.cancel()
            rest = self._decoder.decode(b"", final=True)
            self._take(self._terminal.feed(rest) + self._terminal.finish())
            self._tell_waiting()
            if self._dropped_chars:
                self._emit(f"[... {self._dropped_chars:,} characters left out ...]\n{self._end()}")
        return self._redactor.text(self._end()).strip()

    def _end(self) -> str:
        return "".join(self._tail)[-TAIL_CHARS:]

    def _take(self, text: str) -> None:
        if not text:
            return
        self._keep(text)
        if self._told_bytes >= MAX_EVENT_BYTES:
            self._dropped_chars += len(text)
            return
        self._waiting += text
        while len(self._waiting) >= EVENT_CHARS:
            cut = self._waiting.rfind("\n", 0, EVENT_CHARS) + 1 or EVENT_CHARS
            piece, self._waiting = self._waiting[:cut], self._waiting[cut:]
            self._emit(piece)

    def _keep(self, text: str) -> None:
        self._tail.append(text)
        self._tail_chars += len(text)
        while self._tail_chars - len(self._tail[0]) >= TAIL_CHARS:
            self._tail_chars -= len(self._tail.popleft())

    def _pause_over(self) -> None:
        """Tell the lines that are whole; the one that is being written waits for its end."""
        self._timer = None
        self._take(self._terminal.release())
        self._tell_waiting()

    def _tell_waiting(self) -> None:
        if self._waiting:
            self._emit(self._waiting)
            self._waiting = ""

    def _emit(self, text: str) -> None:
        clean = self._redactor.text(text).encode("utf-8", "replace").decode()
        self._told_bytes += len(clean.encode())
        self._events.emit(OutputData(stream=self._stream, text=clean))

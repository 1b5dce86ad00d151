"""What one call knows, collects, and is told from outside."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from wasm_tools.limits import Limits

_TAIL_BYTES = 4_096


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line that a guest logged."""

    level: str
    text: str


class Captured:
    """The end of what a guest wrote to an output stream, however much it wrote."""

    def __init__(self) -> None:
        self._tail = bytearray()

    def write(self, data: bytes) -> None:
        """Take everything, keep the last 4 KiB."""
        self._tail += data[-_TAIL_BYTES:]
        del self._tail[:-_TAIL_BYTES]

    def last_line(self, limit: int = 300) -> str:
        """The last line that is not blank, cut to `limit` characters."""
        lines = self._tail.decode("utf-8", "replace").split("\n")
        return next((line.strip()[:limit] for line in reversed(lines) if line.strip()), "")


@dataclass(slots=True, eq=False)
class CallState:
    """One call's own context; no other call ever sees it.

    Attributes:
        limits: what it may use.
        deadline: on `time.monotonic`.
        logs: what the guest logged, bounded.
        logs_dropped: lines beyond the bound.
        host_failure: what a host function raised, without its traceback: a traceback would tie frames,
            linker and this object into a cycle that is never freed.
        timed_out: the deadline is what ended it.
        slept: it asked for a sleep that goes beyond the deadline.
    """

    limits: Limits
    deadline: float
    logs: list[LogLine] = field(default_factory=list[LogLine])
    logs_dropped: int = 0
    stdout: Captured = field(default_factory=Captured)
    stderr: Captured = field(default_factory=Captured)
    host_failure: BaseException | None = None
    timed_out: bool = False
    slept: bool = False
    _stop: threading.Event = field(default_factory=threading.Event)

    def stop(self) -> None:
        """Ask the guest to end; from any thread, any number of times."""
        self._stop.set()

    @property
    def stopped(self) -> bool:
        """Whether it was asked to end."""
        return self._stop.is_set()

    def remaining_s(self) -> float:
        """Time left; never negative."""
        return max(0.0, self.deadline - time.monotonic())

    def has_to_end(self) -> bool:
        """Whether the guest may not go on; notes a deadline that has passed."""
        if self.remaining_s() == 0.0:
            self.timed_out = True
        return self.timed_out or self.stopped

    def log(self, level: str, message: str) -> None:
        """Keep a line, within the limits."""
        if len(self.logs) >= self.limits.log_lines:
            self.logs_dropped += 1
            return
        cut = message[: self.limits.log_line_bytes].encode("utf-8", "replace")[: self.limits.log_line_bytes]
        self.logs.append(LogLine(level, cut.decode("utf-8", "ignore")))

"""A clock that stands still until it is moved."""

from __future__ import annotations

from datetime import datetime, timedelta


class FrozenClock:
    """Both clocks, moved by hand."""

    def __init__(self, start: datetime) -> None:
        self._start = start
        self._passed_s = 0.0

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._passed_s)

    def monotonic(self) -> float:
        return self._passed_s

    def advance(self, seconds: float) -> None:
        self._passed_s += seconds

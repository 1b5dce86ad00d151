"""A clock that moves when it is told to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class SteppingClock:
    """Both clocks of the Clock port; `sleep` moves them and returns at once."""

    def __init__(self) -> None:
        self.start = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
        self.elapsed_s = 0.0
        self.sleeps: list[float] = []

    def now(self) -> datetime:
        return self.start + timedelta(seconds=self.elapsed_s)

    def monotonic(self) -> float:
        return self.elapsed_s

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.elapsed_s += seconds

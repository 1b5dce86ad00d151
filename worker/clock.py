"""The system's clocks; the worker reads time nowhere else."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class SystemClock:
    """`tool_registry.clock.Clock` over the operating system."""

    def now(self) -> datetime:
        """The wall clock, UTC."""
        return datetime.now(UTC)  # noqa: TID251 - this is the clock that is passed in

    monotonic = staticmethod(time.monotonic)

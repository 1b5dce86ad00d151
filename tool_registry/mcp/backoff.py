"""How long to wait before a server is tried again."""

from __future__ import annotations

STEPS_S = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0)
STABLE_AFTER_S = 30.0


class Backoff:
    """Grows with every attempt, and begins anew after a connection that lasted."""

    def __init__(self) -> None:
        self._failures = 0

    def lasted(self, seconds: float) -> None:
        """An attempt ended after this long, of which a stable connection takes at least half a minute."""
        if seconds >= STABLE_AFTER_S:
            self._failures = 0

    def next_s(self) -> float:
        """Seconds until the next attempt."""
        step_s = STEPS_S[min(self._failures, len(STEPS_S) - 1)]
        self._failures += 1
        return step_s

"""What one job has used of the way out."""

from __future__ import annotations

import asyncio


class Share:
    """One job's connections: those that are open, how fast new ones may come, what all may carry.

    Attributes:
        open: the tasks that serve its connections.
        left_bytes: what they may still carry.
    """

    def __init__(self, *, rate_per_s: float, burst: int, left_bytes: int) -> None:
        self.open: set[asyncio.Task[object]] = set()
        self.left_bytes = left_bytes
        self._rate_per_s = rate_per_s
        self._burst = burst
        self._ready_at = 0.0  # when all of the burst is there again

    async def turn(self) -> None:
        """Wait for the turn of one more connection."""
        now = asyncio.get_running_loop().time()
        self._ready_at = max(self._ready_at, now) + 1 / self._rate_per_s
        await asyncio.sleep(max(self._ready_at - now - self._burst / self._rate_per_s, 0.0))

    def spend(self, count: int) -> bool:
        """Count bytes that were carried; False when there are none left to carry."""
        self.left_bytes -= count
        return self.left_bytes > 0

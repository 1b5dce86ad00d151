"""How often a job may call a tool."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from tool_registry.tool import RateLimit

_MAX_BUCKETS = 10_000


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class RateLimiter:
    """Token buckets, one a key; the longest unused are forgotten first."""

    def __init__(self, monotonic: Callable[[], float], *, max_buckets: int = _MAX_BUCKETS) -> None:
        self._monotonic = monotonic
        self._buckets: OrderedDict[tuple[str, str], _Bucket] = OrderedDict()
        self._max_buckets = max_buckets

    def take(self, key: tuple[str, str], limit: RateLimit) -> float | None:
        """Take one call.

        Returns:
            None when it may run; else the seconds to wait.
        """
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = _Bucket(float(limit.calls), self._monotonic())
            if len(self._buckets) > self._max_buckets:
                self._buckets.popitem(last=False)
        wait_s = self.wait_s(key, limit)
        if wait_s is None:
            bucket.tokens -= 1
        return wait_s

    def wait_s(self, key: tuple[str, str], limit: RateLimit) -> float | None:
        """The seconds to wait until a call may be taken; None when one may be now."""
        bucket = self._buckets.get(key)
        if bucket is None:
            return None
        self._buckets.move_to_end(key)
        now, rate = self._monotonic(), limit.calls / limit.per_s
        bucket.tokens = min(float(limit.calls), bucket.tokens + (now - bucket.at) * rate)
        bucket.at = now
        return None if bucket.tokens >= 1 else (1 - bucket.tokens) / rate

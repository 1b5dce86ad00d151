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
        now = self._monotonic()
        rate = limit.calls / limit.per_s
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = _Bucket(float(limit.calls), now)
            if len(self._buckets) > self._max_buckets:
                self._buckets.popitem(last=False)
        else:
            self._buckets.move_to_end(key)
        bucket.tokens = min(float(limit.calls), bucket.tokens + (now - bucket.at) * rate)
        bucket.at = now
        if bucket.tokens >= 1:
            bucket.tokens -= 1
            return None
        return (1 - bucket.tokens) / rate

"""Which requests are made again, and after how long."""

from __future__ import annotations

from dataclasses import dataclass

from tool_registry.errors import RemoteProblem

# A model's failure was retried where its key lives; retrying here would multiply the two.
_RETRIED_ELSEWHERE = frozenset({"model_error"})
_RETRYABLE_STATUS = frozenset({502, 503, 504})


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How a client waits.

    Attributes:
        retries: how often an answer that invites a retry, or a broken connection, is tried again.
        first_s: the longest first wait; each further one doubles.
        longest_s: where the doubling stops.
        retry_after_cap_s: a longer `Retry-After` is reported instead of waited for.
        outage_s: how long a socket that nobody answers on is tried.
    """

    retries: int = 5
    first_s: float = 0.25
    longest_s: float = 10.0
    retry_after_cap_s: float = 120.0
    outage_s: float = 600.0

    def delay_s(self, tries: int, jitter: float, retry_after_s: float | None = None) -> float:
        """Seconds to wait after the `tries`-th failure (from 1); `jitter` is in 0..1.

        `Retry-After` is a floor: jitter is added to it, never taken off.
        """
        bound = min(self.first_s * 2 ** min(tries - 1, 16), self.longest_s)
        if retry_after_s is not None:
            return retry_after_s + bound * jitter
        return bound * (0.5 + 0.5 * jitter)

    def may_retry(self, status: int, problem: RemoteProblem) -> bool:
        """Whether the answer invites the same request again."""
        if problem.code in _RETRIED_ELSEWHERE:
            return False
        if (problem.retry_after_s or 0.0) > self.retry_after_cap_s:
            return False
        return status == 429 or (status in _RETRYABLE_STATUS and problem.retryable)

"""How long to wait before a provider is asked again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite


@dataclass(frozen=True, slots=True)
class RetryWaits:
    """Growing, jittered waits: about 2, 12, 72 and 120 s, so that an overload of three minutes is survived.

    Attributes:
        retries: how often to ask again at most.
        cap_s: no wait is longer, whatever the provider asks for.
        budget_s: no new try starts later than this after the first one.
    """

    retries: int = 4
    base_s: float = 2.0
    factor: float = 6.0
    longest_step_s: float = 120.0
    cap_s: float = 120.0
    budget_s: float = 480.0

    def next_wait_s(
        self, *, tried: int, asked_s: float | None, elapsed_s: float, chance: float
    ) -> float | None:
        """Seconds to wait after `tried` failed tries; None is giving up.

        The wait is never shorter than `asked_s`, what the provider asked for, unless that is over the cap;
        `chance` (0 to 1) spreads waits over 0.9 to 1.3 times, so that jobs don't return in step.
        """
        if tried > self.retries:
            return None
        step = min(self.base_s * self.factor ** (tried - 1), self.longest_step_s) * (0.9 + 0.4 * chance)
        asked = (asked_s or 0.0) * (1.0 + 0.1 * chance)
        wait = min(max(step, asked), self.cap_s)
        return wait if elapsed_s + wait <= self.budget_s else None


def asked_wait_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """What `Retry-After` (seconds or a date) or `retry-after-ms` asks for; None when that is no time."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after", "").strip()
    seconds = _number(text)
    if seconds is not None:
        return seconds
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:  # neither a number nor a date, such as "soon"
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (aware - now).total_seconds())


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:  # not a number
        return None
    return number if isfinite(number) and number >= 0 else None

"""Whether the agent goes round in circles."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

from worker.history import compact_json

NOTICE_AT = 5
STUCK_AT = 10
_LONGEST_LOOP = 4
# What differs between two runs of the same thing and says nothing about progress.
_VOLATILE = frozenset({"duration_ms", "pid", "log_path"})


class Verdict(StrEnum):
    """What to do about it."""

    FINE = "fine"
    NOTICE = "notice"
    STUCK = "stuck"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A call and what came of it, as far as repetition goes.

    Attributes:
        arguments: None for a call that never ran: then its name and its refusal are what repeats.
        waited: asked what others do meanwhile.
    """

    name: str
    arguments: Mapping[str, Any] | None
    result: Any
    waited: bool = False


class Repetition:
    """Counts how often the latest turns have repeated themselves.

    A loop is a block of up to four turns that follows itself. Turns whose results change are no loop, nor
    are those that wait for others: only the job's own limits bound how long it waits.
    """

    def __init__(self) -> None:
        self._turns: deque[object] = deque(maxlen=_LONGEST_LOOP * STUCK_AT)

    def add(self, outcomes: Iterable[Outcome]) -> Verdict:
        """Take in a turn's calls; the notice is given once for each loop."""
        self._turns.append(_print_of_turn(list(outcomes)))
        counts = [(self._repeats(period), period) for period in range(1, _LONGEST_LOOP + 1)]
        most, period = max(counts, key=lambda one: one[0])
        if most >= STUCK_AT:
            return Verdict.STUCK
        # A block of several turns is seen again at each of its turns: say it at the first of them.
        at_notice = most == NOTICE_AT and self._length(period) == NOTICE_AT * period
        return Verdict.NOTICE if at_notice else Verdict.FINE

    def _repeats(self, period: int) -> int:
        return self._length(period) // period

    def _length(self, period: int) -> int:
        """How many of the latest turns continue a block of `period` turns."""
        turns = self._turns
        length = min(period, len(turns))
        while length < len(turns) and turns[-1 - length] == turns[-1 - length + period]:
            length += 1
        return length


def _print_of_turn(outcomes: Sequence[Outcome]) -> object:
    """What is equal for turns that are the same."""
    if any(outcome.waited for outcome in outcomes):
        return object()  # like no other turn
    prints = sorted({_print(outcome) for outcome in outcomes})
    return hashlib.sha256(b"".join(prints)).digest()


def _print(outcome: Outcome) -> bytes:
    arguments = None if outcome.arguments is None else dict(outcome.arguments)
    text = compact_json([outcome.name, arguments, _steady(outcome.result)])
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).digest()


def _steady(result: Any) -> Any:
    if not isinstance(result, dict):
        return result
    fields = cast("dict[str, Any]", result)
    return {key: value for key, value in fields.items() if key not in _VOLATILE}

"""Patterns of single names: `*`, `?` and `[...]`, as sequences of sets of characters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from orchestrator.domain.network.pattern_runs import meet

GLOB_CHARS = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class _Chars:
    """A set of characters as inclusive, ascending ranges; `run` stands for any number of any of them."""

    ranges: tuple[tuple[int, int], ...]
    run: bool = False

    def meets(self, other: _Chars) -> bool:
        return any(max(lo, a) <= min(hi, b) for lo, hi in self.ranges for a, b in other.ranges)


def _all_but(ranges: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Every character of a name but these: neither NUL nor '/' can be in one."""
    rest: list[tuple[int, int]] = []
    low = 1
    for lo, hi in sorted((*ranges, (47, 47))):
        if lo > low:
            rest.append((low, lo - 1))
        low = max(low, hi + 1)
    if low <= 0x10FFFF:
        rest.append((low, 0x10FFFF))
    return tuple(rest)


_ANY_CHAR = _Chars(_all_but(()))
_ANY_RUN = _Chars(_ANY_CHAR.ranges, run=True)


def names_meet(a: str, b: str) -> bool:
    """Whether some name matches both name patterns (no `/`, no braces)."""
    if not (GLOB_CHARS.intersection(a) or GLOB_CHARS.intersection(b)):
        return a == b
    return meet(tuple(_chars(a)), tuple(_chars(b)), lambda c: c.run, _Chars.meets)


def _chars(name: str) -> Iterator[_Chars]:
    at = 0
    while at < len(name):
        char = name[at]
        end = _set_end(name, at) if char == "[" else None
        if end is not None:
            yield _set(name[at + 1 : end])
            at = end
        elif char == "*":
            yield _ANY_RUN
        elif char == "?":
            yield _ANY_CHAR
        else:
            yield _Chars(((ord(char), ord(char)),))
        at += 1


def _set_end(name: str, start: int) -> int | None:
    """Where the set that begins at `start` ends; None when it doesn't, and the bracket is an ordinary one."""
    first = start + 2 if name[start + 1 : start + 2] in {"!", "^"} else start + 1
    # A closing bracket that comes first belongs to the set.
    end = name.find("]", first + 1)
    return None if end < 0 else end


def _set(body: str) -> _Chars:
    negated = body[0] in "!^"
    text = body[1:] if negated else body
    ranges: list[tuple[int, int]] = []
    at = 0
    while at < len(text):
        last = at + 2 if text[at + 1 : at + 2] == "-" and at + 2 < len(text) else at
        # A backward range such as z-a holds nothing.
        if text[at] <= text[last]:
            ranges.append((ord(text[at]), ord(text[last])))
        at = last + 1
    if negated:
        return _Chars(_all_but(ranges))
    return _Chars(tuple(sorted(ranges)))

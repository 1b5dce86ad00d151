"""Patterns as sequences of elements, some of which stand for any number of units."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def meet(
    a: Sequence[T], b: Sequence[T], is_run: Callable[[T], bool], units_meet: Callable[[T, T], bool]
) -> bool:
    """Whether two patterns with runs match a common sequence.

    Walks the product of the two patterns, seen as automata: for each element of `a` in turn, bit `j` says
    that the first `j` elements of `b` can have been used by then. Time is a few operations on whole sets for
    each element of `a`, and `len(b)` comparisons for each that is new.
    """
    runs = _places(b, is_run)
    fits: dict[T, int] = {}
    reached = _spread(1, over=runs)
    for unit in a:
        if unit not in fits:
            fits[unit] = _places(b, partial(units_meet, unit))
        if is_run(unit):
            reached = _spread(reached, over=runs | fits[unit])
        else:
            taken = reached & fits[unit]
            # A run of `b` stays where it is while it takes a unit.
            reached = _spread((taken & ~runs) << 1 | (taken & runs), over=runs)
    return bool(reached >> len(b) & 1)


def _places(elements: Sequence[T], wanted: Callable[[T], bool]) -> int:
    """The set of places of the elements that are wanted."""
    return sum(1 << place for place, element in enumerate(elements) if wanted(element))


def _spread(reached: int, *, over: int) -> int:
    """All that can be reached by moving on over elements in `over`."""
    while (more := reached | (reached & over) << 1) != reached:
        reached = more
    return reached

"""What shaping did to a schema, and what it could not do."""

from __future__ import annotations

from collections import defaultdict

_MAX_PLACES = 3


class Notes:
    """Collects changes and refusals with the places they concern; a refusal always names its fix."""

    def __init__(self) -> None:
        self._changes: defaultdict[str, list[str]] = defaultdict(list)
        self._refusals: defaultdict[tuple[str, str], list[str]] = defaultdict(list)

    def changed(self, what: str, pointer: str) -> None:
        """Something stands differently in the copy.

        Args:
            what: a sentence, to which the places are added.
            pointer: into the schema; "" is its root.
        """
        self._changes[what].append(pointer)

    def refused(self, why: str, pointer: str, *, fix: str) -> None:
        """The provider would refuse this, and no copy can help."""
        self._refusals[why, fix].append(pointer)

    @property
    def changes(self) -> tuple[str, ...]:
        """One sentence a kind of change."""
        return tuple(f"{what} {_places(pointers)}" for what, pointers in self._changes.items())

    @property
    def refusals(self) -> tuple[str, ...]:
        """One sentence a kind of refusal, with its fix."""
        return tuple(f"{why} {_places(pointers)}: {fix}" for (why, fix), pointers in self._refusals.items())


def _places(pointers: list[str]) -> str:
    named = [pointer or "the root" for pointer in dict.fromkeys(pointers)]
    shown = ", ".join(named[:_MAX_PLACES])
    more = len(named) - _MAX_PLACES
    return f"(at {shown}{f' and {more} more places' if more > 0 else ''})"

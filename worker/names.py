"""Which tool a model meant by the name it wrote."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_PREFIXES = ("functions.", "functions:", "functions/", "tools.", "tool.")
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
_MAX_NEAR = 3


@dataclass(frozen=True, slots=True)
class Resolved:
    """The registered name that was meant, or None and the names that come near."""

    name: str | None
    near: tuple[str, ...] = ()


def resolve(written: str, known: Sequence[str]) -> Resolved:
    """Find the tool of a written name.

    Only trivial forms are mapped, and only when exactly one tool fits: letter case, blanks around it, and
    the prefixes some models put before every name (`functions.`). Everything else is a suggestion.
    """
    if written in known:
        return Resolved(written)
    plain = written.strip()
    for prefix in _PREFIXES:
        plain = plain.removeprefix(prefix)
    plain = plain.strip()
    if not plain:
        return Resolved(None)
    if plain in known:
        return Resolved(plain)
    same = [name for name in known if name.lower() == plain.lower()]
    if len(same) == 1:
        return Resolved(same[0])
    return Resolved(None, _near(plain, known))


def _near(plain: str, known: Iterable[str]) -> tuple[str, ...]:
    """Names that hold the written one, or are held by it, then those spelt alike."""
    lowered = {name.lower(): name for name in known}
    wanted = plain.lower()[:100]
    inside = [name for low, name in lowered.items() if len(wanted) > 2 and (wanted in low or low in wanted)]
    alike = [lowered[low] for low in difflib.get_close_matches(wanted, lowered, n=_MAX_NEAR, cutoff=0.6)]
    return tuple(dict.fromkeys([*alike, *sorted(inside, key=len)]))[:_MAX_NEAR]


def storable_name(written: str) -> str:
    """A name that every provider takes back in a history: of an unknown tool, its legal rest."""
    return _ILLEGAL.sub("_", written.strip())[:64] or "unnamed"

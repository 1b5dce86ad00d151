"""The name that somebody most likely meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import islice

_MAX_KNOWN = 1_000
_MAX_NAME_CHARS = 100


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` is most likely a slip of; None for names no slip can make."""
    if len(name) > _MAX_NAME_CHARS:
        return None
    lowered = {one.lower(): one for one in islice(known, _MAX_KNOWN)}
    match = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.6)
    return lowered[match[0]] if match else None

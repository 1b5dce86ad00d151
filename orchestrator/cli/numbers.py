"""Numbers as options take them."""

from __future__ import annotations

from math import isfinite


def over_zero(text: str) -> float:
    """A finite number over zero.

    Raises:
        ValueError: it is none.
    """
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not (isfinite(number) and number > 0):
        message = f"{text[:40]!r} is not a number over 0; write it like 1.5"
        raise ValueError(message)
    return number

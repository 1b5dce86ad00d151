"""Numbers of things, in words."""

from __future__ import annotations


def counted(number: int, thing: str) -> str:
    """`1 turn`, `2 turns`."""
    return f"{number} {thing}{'' if number == 1 else 's'}"

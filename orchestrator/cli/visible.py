"""Text of agents and tools on a terminal: nothing in it moves the cursor, colours or hides anything."""

from __future__ import annotations


def visible(text: str) -> str:
    """The text with every control and formatting character but line breaks and tabs written as its escape."""
    return "".join(char if char.isprintable() or char in "\n\t" else _escape(char) for char in text)


def one_line(text: str, limit: int = 200) -> str:
    """One line of at most `limit` characters."""
    flat = visible(" ".join(text.split()))
    return flat if len(flat) <= limit else flat[: limit - 3] + "..."


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode()

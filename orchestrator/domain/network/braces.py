"""Braces in patterns: `{a,b}` is either text."""

from __future__ import annotations

from collections.abc import Iterator


def alternatives(text: str) -> Iterator[str]:
    """Write out `{a,b}`, also nested, lazily; braces without a comma or a partner are ordinary characters."""
    found = _first_braces(text)
    if found is None:
        yield text
        return
    start, end, parts = found
    for part in parts:
        yield from alternatives(text[:start] + part + text[end:])


def _first_braces(text: str) -> tuple[int, int, list[str]] | None:
    for start, char in enumerate(text):
        if char == "{":
            found = _closing(text, start)
            if found and len(found[1]) > 1:
                return start, found[0], found[1]
    return None


def _closing(text: str, start: int) -> tuple[int, list[str]] | None:
    """Where the brace at `start` ends, and the texts between its commas; None when it never ends."""
    depth, parts, begin = 0, list[str](), start + 1
    for at in range(start, len(text)):
        char = text[at]
        if char == "{":
            depth += 1
        elif char == "," and depth == 1:
            parts.append(text[begin:at])
            begin = at + 1
        elif char == "}":
            depth -= 1
            if depth == 0:
                return at + 1, [*parts, text[begin:at]]
    return None

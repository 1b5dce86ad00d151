"""Patches as a model writes them."""

from __future__ import annotations


def patch(*lines: str) -> str:
    """A patch of these lines between its markers."""
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch", ""])


def update(path: str, *lines: str) -> str:
    """A patch of these lines for one file."""
    return patch(f"*** Update File: {path}", *lines)

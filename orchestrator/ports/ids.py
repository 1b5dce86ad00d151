"""Identifiers, passed in."""

from __future__ import annotations

from typing import Protocol


class Ids(Protocol):
    """Makes identifiers."""

    def new(self) -> str:
        """A fresh UUIDv7 as text: unique, and later ones sort later."""
        ...

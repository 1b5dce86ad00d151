"""Encryption of values at rest."""

from __future__ import annotations

from typing import Protocol


class Sealer(Protocol):
    """Seals values so that they open only under the same master key, in the row they were sealed for."""

    def seal(self, value: bytes, *, table: str, row: str, version: int) -> bytes:
        """The sealed value; sealing the same one twice gives different bytes."""
        ...

    def open(self, sealed: bytes, *, table: str, row: str, version: int) -> bytes:
        """The value.

        Raises:
            SecretUnreadable: it was changed, moved, or sealed under another master key.
        """
        ...

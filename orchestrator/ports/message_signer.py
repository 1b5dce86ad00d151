"""Signs what agents write to one another."""

from __future__ import annotations

from typing import Protocol


class MessageSigner(Protocol):
    """The hub's signature."""

    @property
    def key_id(self) -> str:
        """Which key signs now."""
        ...

    def sign(self, data: bytes) -> str:
        """The present key's signature, as text."""
        ...

    def verifies(self, key_id: str, data: bytes, signature: str) -> bool | None:
        """Whether the signature is this key's over the data; None when the key is not known."""
        ...

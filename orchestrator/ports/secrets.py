"""Where secret values are kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from orchestrator.ports.errors import StoreError


@dataclass(frozen=True, slots=True)
class SecretName:
    """A secret's name and version, without its value."""

    name: str
    version: int
    updated_at: datetime


class SecretStore(Protocol):
    """Named secret values, encrypted at rest and bound to their row."""

    async def set(self, name: str, value: str) -> None:
        """Store a value; an older one of this name is gone."""
        ...

    async def get(self, name: str) -> str | None:
        """The value, or None.

        Raises:
            SecretUnreadable: the stored bytes were changed, moved, or sealed under another master key.
        """
        ...

    async def names(self) -> list[SecretName]:
        """What there is, sorted by name."""
        ...

    async def delete(self, name: str) -> bool:
        """Remove it; False when it was not there."""
        ...


class SecretUnreadable(StoreError):
    """A stored secret can't be opened."""

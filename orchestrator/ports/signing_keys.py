"""Keys that sign job tokens."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class SigningKey:
    """An Ed25519 key pair.

    Attributes:
        kid: names it in a token's header.
        private_pem: PKCS8, PEM.
        retired_at: from then on it only verifies.
    """

    kid: str
    private_pem: str = field(repr=False)
    created_at: datetime
    retired_at: datetime | None = None


class SigningKeyStore(Protocol):
    """Signing keys, sealed at rest."""

    async def add(self, key: SigningKey) -> None:
        """Store a key."""
        ...

    async def list(self) -> list[SigningKey]:
        """All keys, newest first."""
        ...

    async def retire(self, kid: str, at: datetime) -> None:
        """Sign no more with it."""
        ...

    async def delete(self, kid: str) -> None:
        """Verify no more with it."""
        ...

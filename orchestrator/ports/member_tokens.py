"""Tokens of agents and representatives outside of jobs: what was given out, and what is void."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol


class Holder(StrEnum):
    """Whom a token is for."""

    AGENT = "agent"
    REPRESENTATIVE = "representative"


@dataclass(frozen=True, slots=True)
class MemberToken:
    """A token that was given out; its text is not kept.

    Attributes:
        id: the token's `jti`.
        name: the agent's or representative's.
        network: the agent's; "" for a representative, which has grants in several.
    """

    id: str
    holder: Holder
    name: str
    network: str
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None = None


class MemberTokenStore(Protocol):
    """Tokens that were given out.

    Raises:
        StoreUnavailable: from any method, when the database does not answer.
    """

    async def add(self, token: MemberToken) -> None:
        """Store a new one."""
        ...

    async def get(self, token_id: str) -> MemberToken | None:
        """One token."""
        ...

    async def list(self) -> list[MemberToken]:
        """All of them, newest first."""
        ...

    async def revoke(self, token_id: str, at: datetime) -> MemberToken | None:
        """Make a token void; an earlier revocation stands. None when there is no such token."""
        ...

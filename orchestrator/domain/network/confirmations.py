"""A call that waits for a person's yes: good for that call of that caller, once, and not for long."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from orchestrator.domain.network.identities import AgentName, NetworkName

LIFETIME = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Confirmation:
    """One call that was asked for.

    Attributes:
        call: the tool and what it is to act on; only that same call uses it.
        says: the same for the person who decides.
        confirmed_at: when a person agreed.
        used_at: when the call ran.
    """

    id: str
    representative: AgentName
    network: NetworkName
    call: str
    says: str
    created_at: datetime
    expires_at: datetime
    confirmed_at: datetime | None = None
    used_at: datetime | None = None

    def open(self, now: datetime) -> bool:
        """It can still be agreed to, or used."""
        return self.used_at is None and now < self.expires_at

    def is_for(self, other: Confirmation) -> bool:
        """Whether it is of the same caller and call."""
        mine = (self.representative, self.network, self.call)
        return mine == (other.representative, other.network, other.call)

    def confirmed(self, now: datetime) -> Confirmation | None:
        """Agreed to; the first time stands. None when it is too late."""
        if not self.open(now):
            return None
        return self if self.confirmed_at is not None else replace(self, confirmed_at=now)

    def used(self, now: datetime) -> Confirmation | None:
        """Spent; None when it can't be: nobody agreed, it is too late, or it was spent before."""
        if self.confirmed_at is None or not self.open(now):
            return None
        return replace(self, used_at=now)


def asked(confirmation_id: str, wanted: Confirmation, now: datetime) -> Confirmation:
    """A new one for a call."""
    return replace(wanted, id=confirmation_id, created_at=now, expires_at=now + LIFETIME)

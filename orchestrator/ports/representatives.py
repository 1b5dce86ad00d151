"""Representatives: what they and their people may, what waits for a yes, and the operator's channel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from orchestrator.domain.network.confirmations import Confirmation
from orchestrator.domain.network.identities import AgentName, NetworkName
from orchestrator.domain.network.rights import Representative, Right, Rights


@dataclass(frozen=True, slots=True)
class ChannelMessage:
    """One message between a representative and the operator.

    Attributes:
        conversation_id: joins messages that belong together.
        from_operator: who said it.
    """

    id: str
    representative: AgentName
    conversation_id: str
    from_operator: bool
    body: str
    created_at: datetime


class RepresentativeStore(Protocol):
    """Representatives and access.

    Raises:
        StoreUnavailable: from any method, when the database does not answer.
    """

    async def put(self, representative: Representative) -> None:
        """Store one with its grants, in place of an earlier one of its name."""
        ...

    async def get(self, name: AgentName) -> Representative | None:
        """One."""
        ...

    async def list(self) -> list[Representative]:
        """All, by name."""
        ...

    async def remove(self, name: AgentName) -> bool:
        """Forget one with its grants; False when it was not there."""
        ...

    async def set_access(self, person: str, network: NetworkName, rights: frozenset[Right]) -> None:
        """What a person may in a network; nothing takes it away."""
        ...

    async def access(self, person: str) -> Rights:
        """What a person may, by network."""
        ...


class ConfirmationStore(Protocol):
    """Calls that wait for a person's yes.

    Raises:
        StoreUnavailable: from any method, when the database does not answer.
    """

    async def add(self, confirmation: Confirmation) -> None:
        """Store a new one."""
        ...

    async def change(
        self, confirmation_id: str, change: Callable[[Confirmation], Confirmation | None]
    ) -> Confirmation | None:
        """Change one as one transaction.

        Returns:
            None, and nothing changed, when it is not there or `change` says None.
        """
        ...

    async def open(self, now: datetime) -> list[Confirmation]:
        """Those that can still be agreed to or used, oldest first."""
        ...


class ChannelStore(Protocol):
    """What representatives and the operator said.

    Raises:
        StoreUnavailable: from any method, when the database does not answer.
    """

    async def add(self, message: ChannelMessage) -> None:
        """Store a message behind all others."""
        ...

    async def history(
        self, *, representative: AgentName | None = None, conversation_id: str | None = None, limit: int = 100
    ) -> list[ChannelMessage]:
        """The newest `limit` messages, oldest first."""
        ...

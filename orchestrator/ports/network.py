"""Where the agent network is kept."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Protocol, TypeVar

from orchestrator.domain.network.identities import InstanceId, NetworkName
from orchestrator.ports.network_mail import MailReader, MailWriter
from orchestrator.ports.network_members import MembersReader, MembersWriter
from orchestrator.ports.network_work import WorkReader, WorkWriter

T = TypeVar("T")


class NetworkReader(MembersReader, WorkReader, MailReader, Protocol):
    """One network as it stands. Another network's things are not there."""

    def exists(self) -> bool:
        """Whether the network was made."""
        ...


class NetworkTransaction(NetworkReader, MembersWriter, WorkWriter, MailWriter, Protocol):
    """One network, locked: nobody else changes it before the transaction ends."""

    def create(self, at: datetime) -> None:
        """Make the network; changes nothing when it is there."""
        ...


class NetworkStore(Protocol):
    """Every network, durable.

    Raises:
        StoreUnavailable: from any method, when the database does not answer.
    """

    async def read(self, network: NetworkName, work: Callable[[NetworkReader], T]) -> T:
        """Read one network, all of it as of one moment, without keeping writers out.

        Args:
            network: a normal name.
            work: pure but for what it reads; may run more than once.
        """
        ...

    async def change(self, network: NetworkName, work: Callable[[NetworkTransaction], T]) -> T:
        """Change one network as one transaction: what `work` raises undoes all that it put.

        Changes of one network run one after another, in every process.

        Args:
            network: a normal name.
            work: pure but for what it reads and puts; may run more than once.
        """
        ...

    async def network_of(self, instance_id: InstanceId) -> NetworkName | None:
        """The network that an instance belongs to; ids are unique over all networks."""
        ...

    async def networks(self) -> list[NetworkName]:
        """Every network that was made, by name."""
        ...

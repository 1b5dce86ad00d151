"""`NetworkStore` over SQL."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from sqlalchemy import Connection, select, text

from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.inserts import insert_if_absent
from orchestrator.adapters.db.network_mail import MailRows
from orchestrator.adapters.db.network_members import MemberRows
from orchestrator.adapters.db.network_work import WorkRows
from orchestrator.adapters.db.tables_network import network_instances, networks
from orchestrator.domain.network.identities import InstanceId, NetworkName
from orchestrator.ports.message_signer import MessageSigner
from orchestrator.ports.network import NetworkReader, NetworkTransaction

T = TypeVar("T")


class SqlNetworkStore:
    """Networks, one row for each thing in them.

    Changes of one network take turns: in PostgreSQL by an advisory lock of its name, in SQLite by the write
    lock.
    """

    def __init__(self, database: Database, signer: MessageSigner | None = None) -> None:
        """Without a signer messages are stored unsigned."""
        self._database = database
        self._signer = signer

    async def read(self, network: NetworkName, work: Callable[[NetworkReader], T]) -> T:
        """Read one network, all of it as of one moment."""

        def run(connection: Connection) -> T:
            if connection.dialect.name == "postgresql":
                connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"))
            return work(_Rows(connection, network, self._signer))

        return await self._database.read(run)

    async def change(self, network: NetworkName, work: Callable[[NetworkTransaction], T]) -> T:
        """Change one network as one transaction; what `work` raises undoes all that it put."""

        def run(connection: Connection) -> T:
            if connection.dialect.name == "postgresql":
                lock = text("SELECT pg_advisory_xact_lock(hashtextextended(:network, 0))")
                connection.execute(lock, {"network": f"network {network}"})
            return work(_Rows(connection, network, self._signer))

        return await self._database.write(run)

    async def network_of(self, instance_id: InstanceId) -> NetworkName | None:
        """The network that an instance belongs to."""
        query = select(network_instances.c.network).where(network_instances.c.id == instance_id)
        found = await self._database.read(lambda connection: connection.scalar(query))
        return None if found is None else NetworkName(found)

    async def networks(self) -> list[NetworkName]:
        """Every network that was made, by name."""
        query = select(networks.c.name).order_by(networks.c.name)
        found = await self._database.read(lambda connection: connection.scalars(query).all())
        return [NetworkName(name) for name in found]


class _Rows(MemberRows, WorkRows, MailRows):
    """One network, within one transaction."""

    def exists(self) -> bool:
        query = select(networks.c.name).where(networks.c.name == self.network)
        return self.connection.scalar(query) is not None

    def create(self, at: datetime) -> None:
        row = {"name": self.network, "created_at": at}
        insert_if_absent(self.connection, networks, row, key=["name"])

"""`RepresentativeStore` over SQL."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, delete, insert, select, update

from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.tables_access import network_access, representatives
from orchestrator.domain.network.identities import AgentName, NetworkName
from orchestrator.domain.network.rights import Representative, Right, Rights


class SqlRepresentativeStore:
    """A row for each representative, and for each person and network."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, representative: Representative) -> None:
        """Store one with its grants, in place of an earlier one of its name."""
        row = {
            "name": representative.name,
            "person": representative.person,
            "created_at": representative.created_at,
            "active_network": representative.active_network,
            "grants": {network: _words(rights) for network, rights in representative.grants.items()},
        }
        same = representatives.c.name == representative.name

        def work(connection: Any) -> None:
            if connection.execute(update(representatives).where(same).values(row)).rowcount == 0:
                connection.execute(insert(representatives).values(row))

        await self._database.write(work)

    async def get(self, name: AgentName) -> Representative | None:
        """One."""
        query = select(representatives).where(representatives.c.name == name)
        row = await self._database.read(lambda connection: connection.execute(query).one_or_none())
        return None if row is None else _representative(row)

    async def list(self) -> list[Representative]:
        """All, by name."""
        query = select(representatives).order_by(representatives.c.name)
        return await self._database.read(
            lambda connection: [_representative(row) for row in connection.execute(query)]
        )

    async def remove(self, name: AgentName) -> bool:
        """Forget one with its grants."""
        statement = delete(representatives).where(representatives.c.name == name)
        return await self._database.write(lambda connection: connection.execute(statement).rowcount == 1)

    async def set_access(self, person: str, network: NetworkName, rights: frozenset[Right]) -> None:
        """What a person may in a network."""
        same = (network_access.c.person == person) & (network_access.c.network == network)
        row = {"person": person, "network": network, "rights": _words(rights)}

        def work(connection: Any) -> None:
            connection.execute(delete(network_access).where(same))
            if rights:
                connection.execute(insert(network_access).values(row))

        await self._database.write(work)

    async def access(self, person: str) -> Rights:
        """What a person may, by network."""
        query = select(network_access.c.network, network_access.c.rights).where(
            network_access.c.person == person
        )
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return {NetworkName(row.network): _rights(row.rights) for row in rows}


def _words(rights: frozenset[Right]) -> list[str]:
    return sorted(right.value for right in rights)


def _rights(words: list[str]) -> frozenset[Right]:
    return frozenset(Right(word) for word in words)


def _representative(row: Row[Any]) -> Representative:
    return Representative(
        AgentName(row.name),
        row.person,
        row.created_at,
        row.active_network,
        {NetworkName(network): _rights(words) for network, words in row.grants.items()},
    )

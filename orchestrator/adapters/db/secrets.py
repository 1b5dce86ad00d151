"""`SecretStore` over SQL."""

from __future__ import annotations

from sqlalchemy import Connection, delete, select, update

from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.inserts import insert_if_absent
from orchestrator.adapters.db.tables import secrets
from orchestrator.ports.sealer import Sealer
from orchestrator.ports.secrets import SecretName
from tool_registry.clock import Clock

_TABLE = secrets.name


class SqlSecretStore:
    """Named secret values, each sealed for its name and version."""

    def __init__(self, database: Database, sealer: Sealer, clock: Clock) -> None:
        self._database = database
        self._sealer = sealer
        self._clock = clock

    async def set(self, name: str, value: str) -> None:
        """Store a value; an older one of this name is gone."""
        first = {"name": name, "version": 0, "sealed": b"", "updated_at": self._clock.now()}
        this = update(secrets).where(secrets.c.name == name)
        count = this.values(version=secrets.c.version + 1, updated_at=first["updated_at"])

        def work(connection: Connection) -> None:
            version: int | None = None
            # The row may be deleted between the two statements; once counted up, it is locked.
            while version is None:
                insert_if_absent(connection, secrets, first, key=["name"])
                version = connection.scalar(count.returning(secrets.c.version))
            sealed = self._sealer.seal(_encode(value), table=_TABLE, row=name, version=version)
            connection.execute(this.values(sealed=sealed))

        await self._database.write(work)

    async def get(self, name: str) -> str | None:
        """The value, or None.

        Raises:
            SecretUnreadable: the stored bytes were changed, moved, or sealed under another master key.
        """
        query = select(secrets.c.sealed, secrets.c.version).where(secrets.c.name == name)
        row = await self._database.read(lambda connection: connection.execute(query).one_or_none())
        if row is None:
            return None
        return _decode(self._sealer.open(row.sealed, table=_TABLE, row=name, version=row.version))

    async def names(self) -> list[SecretName]:
        """What there is, sorted by name."""
        query = select(secrets.c.name, secrets.c.version, secrets.c.updated_at).order_by(secrets.c.name)
        return await self._database.read(
            lambda connection: [SecretName(*row) for row in connection.execute(query)]
        )

    async def delete(self, name: str) -> bool:
        """Remove it; False when it was not there."""
        statement = delete(secrets).where(secrets.c.name == name)
        return await self._database.write(lambda connection: connection.execute(statement).rowcount == 1)


def _encode(value: str) -> bytes:
    return value.encode("utf-8", "surrogatepass")


def _decode(value: bytes) -> str:
    return value.decode("utf-8", "surrogatepass")

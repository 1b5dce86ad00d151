"""`SigningKeyStore` over SQL."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import delete, insert, select, update

from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.tables import signing_keys
from orchestrator.ports.sealer import Sealer
from orchestrator.ports.signing_keys import SigningKey

_TABLE = signing_keys.name
_VERSION = 1  # a key's bytes never change


class SqlSigningKeyStore:
    """Signing keys of one purpose; the private half is sealed for its key id."""

    def __init__(self, database: Database, sealer: Sealer, *, purpose: str = "tokens") -> None:
        self._database = database
        self._sealer = sealer
        self._purpose = purpose

    async def add(self, key: SigningKey) -> None:
        """Store a key.

        Raises:
            AlreadyExists: a key of this id is there.
        """
        sealed = self._sealer.seal(key.private_pem.encode(), table=_TABLE, row=key.kid, version=_VERSION)
        statement = insert(signing_keys).values(
            kid=key.kid,
            sealed=sealed,
            created_at=key.created_at,
            retired_at=key.retired_at,
            purpose=self._purpose,
        )
        await self._database.write(lambda connection: connection.execute(statement))

    async def list(self) -> list[SigningKey]:
        """All keys, newest first.

        Raises:
            SecretUnreadable: a stored key was changed, moved, or sealed under another master key.
        """
        table = signing_keys.c
        query = select(signing_keys).where(table.purpose == self._purpose)
        query = query.order_by(table.created_at.desc(), table.kid.desc())
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return [
            SigningKey(row.kid, self._open(row.kid, row.sealed), row.created_at, row.retired_at)
            for row in rows
        ]

    async def retire(self, kid: str, at: datetime) -> None:
        """Sign no more with it; an earlier retirement stands."""
        statement = (
            update(signing_keys)
            .where(signing_keys.c.kid == kid, signing_keys.c.retired_at.is_(None))
            .values(retired_at=at)
        )
        await self._database.write(lambda connection: connection.execute(statement))

    async def delete(self, kid: str) -> None:
        """Verify no more with it."""
        statement = delete(signing_keys).where(signing_keys.c.kid == kid)
        await self._database.write(lambda connection: connection.execute(statement))

    def _open(self, kid: str, sealed: bytes) -> str:
        return self._sealer.open(sealed, table=_TABLE, row=kid, version=_VERSION).decode()

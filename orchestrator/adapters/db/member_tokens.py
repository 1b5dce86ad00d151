"""`MemberTokenStore` over SQL."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.tables_access import member_tokens
from orchestrator.ports.member_tokens import Holder, MemberToken


class SqlMemberTokenStore:
    """Tokens that were given out, a row each."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, token: MemberToken) -> None:
        """Store a new one."""
        statement = insert(member_tokens).values(**asdict(token))
        await self._database.write(lambda connection: connection.execute(statement))

    async def get(self, token_id: str) -> MemberToken | None:
        """One token."""
        return await self._database.read(lambda connection: _found(connection, token_id))

    async def list(self) -> list[MemberToken]:
        """All of them, newest first."""
        query = select(member_tokens).order_by(member_tokens.c.created_at.desc(), member_tokens.c.id.desc())
        return await self._database.read(
            lambda connection: [_token(row) for row in connection.execute(query)]
        )

    async def revoke(self, token_id: str, at: datetime) -> MemberToken | None:
        """Make a token void."""
        statement = (
            update(member_tokens)
            .where(member_tokens.c.id == token_id, member_tokens.c.revoked_at.is_(None))
            .values(revoked_at=at)
        )

        def work(connection: Connection) -> MemberToken | None:
            connection.execute(statement)
            return _found(connection, token_id)

        return await self._database.write(work)


def _found(connection: Connection, token_id: str) -> MemberToken | None:
    row = connection.execute(select(member_tokens).where(member_tokens.c.id == token_id)).one_or_none()
    return None if row is None else _token(row)


def _token(row: Row[Any]) -> MemberToken:
    return MemberToken(
        id=row.id,
        holder=Holder(row.holder),
        name=row.name,
        network=row.network,
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
    )

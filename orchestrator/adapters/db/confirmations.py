"""`ConfirmationStore` over SQL."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert, select, update

from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.rows import row_of
from orchestrator.adapters.db.tables_access import confirmations
from orchestrator.domain.network.confirmations import Confirmation


class SqlConfirmationStore:
    """A row for each call that waits for a yes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, confirmation: Confirmation) -> None:
        """Store a new one."""
        statement = insert(confirmations).values(row_of(confirmation))
        await self._database.write(lambda connection: connection.execute(statement))

    async def change(
        self, confirmation_id: str, change: Callable[[Confirmation], Confirmation | None]
    ) -> Confirmation | None:
        """Change one as one transaction."""
        same = confirmations.c.id == confirmation_id

        def work(connection: Connection) -> Confirmation | None:
            # The row stays ours until the end: of two that use it at once, the second finds it used.
            row = connection.execute(select(confirmations).where(same).with_for_update()).one_or_none()
            changed = None if row is None else change(_confirmation(row))
            if changed is not None:
                connection.execute(update(confirmations).where(same).values(row_of(changed)))
            return changed

        return await self._database.write(work)

    async def open(self, now: datetime) -> list[Confirmation]:
        """Those that can still be agreed to or used, oldest first."""
        table = confirmations.c
        query = select(confirmations).where(table.used_at.is_(None), table.expires_at > now)
        query = query.order_by(table.created_at, table.id)
        return await self._database.read(
            lambda connection: [_confirmation(row) for row in connection.execute(query)]
        )


def _confirmation(row: Any) -> Confirmation:
    return Confirmation(**row._mapping)  # noqa: SLF001 - how SQLAlchemy gives a row as a mapping

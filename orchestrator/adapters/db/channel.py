"""`ChannelStore` over SQL."""

from __future__ import annotations

from sqlalchemy import insert, select

from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.rows import columns_of, row_of
from orchestrator.adapters.db.tables_access import channel_messages
from orchestrator.domain.network.identities import AgentName
from orchestrator.ports.representatives import ChannelMessage


class SqlChannelStore:
    """A row for each message."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, message: ChannelMessage) -> None:
        """Store a message behind all others."""
        statement = insert(channel_messages).values(row_of(message))
        await self._database.write(lambda connection: connection.execute(statement))

    async def history(
        self, *, representative: AgentName | None = None, conversation_id: str | None = None, limit: int = 100
    ) -> list[ChannelMessage]:
        """The newest `limit` messages, oldest first."""
        table = channel_messages.c
        query = select(*columns_of(channel_messages, ChannelMessage)).order_by(table.number.desc())
        if representative is not None:
            query = query.where(table.representative == representative)
        if conversation_id is not None:
            query = query.where(table.conversation_id == conversation_id)
        rows = await self._database.read(lambda connection: connection.execute(query.limit(limit)).all())
        return [ChannelMessage(*row) for row in reversed(rows)]

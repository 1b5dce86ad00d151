"""`ToolSwitches` over SQL."""

from __future__ import annotations

from sqlalchemy import delete, select

from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.inserts import insert_if_absent
from orchestrator.adapters.db.tables import disabled_tools
from orchestrator.ports.tool_switches import ToolIdentity


class SqlToolSwitches:
    """A row for each disabled tool."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def disabled(self) -> set[ToolIdentity]:
        """All of them."""
        query = select(disabled_tools.c.owner, disabled_tools.c.original_name)
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return {(row.owner, row.original_name) for row in rows}

    async def disable(self, tool: ToolIdentity) -> None:
        """Remember it; once is enough."""
        row = {"owner": tool[0], "original_name": tool[1]}
        await self._database.write(
            lambda connection: insert_if_absent(connection, disabled_tools, row, key=list(row))
        )

    async def enable(self, tool: ToolIdentity) -> None:
        """Forget it."""
        statement = delete(disabled_tools).where(
            disabled_tools.c.owner == tool[0], disabled_tools.c.original_name == tool[1]
        )
        await self._database.write(lambda connection: connection.execute(statement))

"""`AuditStore` over SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, func, insert, select

from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.tables import audit
from orchestrator.ports.audit import AuditRow, ToolUse

_COLUMNS = tuple(audit.c[name] for name in AuditRow._fields)
_REFUSED_BY_SCHEMA = "invalid_params"


class SqlAuditStore:
    """Audit rows, numbered as they come."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(self, rows: Sequence[AuditRow]) -> None:
        """Store rows, all of them or none."""
        if rows:
            # Made in the database's thread: there can be thousands.
            await self._database.write(
                lambda connection: connection.execute(insert(audit), [row._asdict() for row in rows])
            )

    async def read(self, *, job_id: str | None = None, limit: int = 500) -> list[AuditRow]:
        """Rows, oldest first; the newest `limit` of them."""
        query = select(*_COLUMNS).order_by(audit.c.number.desc()).limit(limit)
        if job_id is not None:
            query = query.where(audit.c.job_id == job_id)
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return [_audit_row(row) for row in reversed(rows)]

    async def tool_use(self) -> list[ToolUse]:
        """Per tool, sorted by name: calls, and how many first calls of a job were accepted.

        A call is accepted when its arguments fitted the schema, whatever came of it.
        """
        calls = select(
            audit.c.tool_name,
            (audit.c.verdict != _REFUSED_BY_SCHEMA).label("accepted"),
            func.row_number()
            .over(partition_by=[audit.c.job_id, audit.c.tool_name], order_by=[audit.c.at, audit.c.number])
            .label("turn"),
        ).subquery()
        first = calls.c.turn == 1
        query = (
            select(
                calls.c.tool_name,
                func.count(),
                func.count().filter(calls.c.accepted),
                func.count().filter(first),
                func.count().filter(first, calls.c.accepted),
            )
            .group_by(calls.c.tool_name)
            .order_by(calls.c.tool_name)
        )
        return await self._database.read(
            lambda connection: [ToolUse(*row) for row in connection.execute(query)]
        )


def _audit_row(row: Row[Any]) -> AuditRow:
    stored = AuditRow(*row)
    return stored._replace(rules=tuple(stored.rules))

"""`AuditStore` over SQL."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Dialect, Row, func, select

from orchestrator.adapters.db.column_types import AnyText, JsonText, UtcTime
from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.tables import audit
from orchestrator.adapters.db.tool_stats import tool_stats
from orchestrator.ports.audit import AuditRow, ToolStats

_COLUMNS = tuple(audit.c[name] for name in AuditRow._fields)
_TEXTS = [(at, column.type) for at, column in enumerate(_COLUMNS) if isinstance(column.type, AnyText)]
_OTHERS = [
    (at, column.type) for at, column in enumerate(_COLUMNS) if isinstance(column.type, JsonText | UtcTime)
]
_PARAMS_AT = AuditRow._fields.index("params")
MAX_PARAMS_CHARS = 64 * 1024
_BEGINNING_CHARS = 4 * 1024
_texts_of: Callable[[AuditRow], tuple[str, ...]] = itemgetter(*(at for at, _ in _TEXTS))


class SqlAuditStore:
    """Audit rows, numbered as they come."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(self, rows: Sequence[AuditRow]) -> None:
        """Store rows, all of them or none."""
        if rows:
            await self._database.write(lambda connection: _insert(connection, rows))

    async def read(self, *, job_id: str | None = None, limit: int = 500) -> list[AuditRow]:
        """Rows, oldest first; the newest `limit` of them."""
        query = select(*_COLUMNS).order_by(audit.c.number.desc()).limit(limit)
        if job_id is not None:
            query = query.where(audit.c.job_id == job_id)
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return [_audit_row(row) for row in reversed(rows)]

    async def first_calls(self, job_id: str) -> list[AuditRow]:
        """The first call of each tool that a job called, in the order of the calls."""
        turn = func.row_number().over(partition_by=audit.c.tool_name, order_by=[audit.c.at, audit.c.number])
        calls = select(audit, turn.label("turn")).where(audit.c.job_id == job_id).subquery()
        columns = [calls.c[name] for name in AuditRow._fields]
        query = select(*columns).where(calls.c.turn == 1).order_by(calls.c.at, calls.c.number)
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return [_audit_row(row) for row in rows]

    async def stats(self, names: Collection[str] = ()) -> list[ToolStats]:
        """Per tool, sorted by name; of these tools, or of all that were ever called."""
        return await self._database.read(lambda connection: tool_stats(connection, names))


def _insert(connection: Connection, rows: Sequence[AuditRow]) -> None:
    """Insert thousands of rows: converted here, so that the driver gets plain tuples.

    `connection.execute(insert(audit), rows)` takes twice as long (measured).
    """
    dialect = connection.dialect
    values = [_bound(row, dialect) for row in rows]
    marker = "?" if dialect.paramstyle == "qmark" else "%s"
    names, markers = ", ".join(AuditRow._fields), ", ".join([marker] * len(_COLUMNS))
    connection.exec_driver_sql(f"INSERT INTO {audit.name} ({names}) VALUES ({markers})", values)  # noqa: S608 - our own names


def _bound(row: AuditRow, dialect: Dialect) -> tuple[Any, ...]:
    """A row's values as its columns' types bind them; one look tells that no text needs an escape."""
    values: list[Any] = list(row)
    for at, kind in _OTHERS:
        values[at] = kind.process_bind_param(values[at], dialect)
    if len(values[_PARAMS_AT]) > MAX_PARAMS_CHARS:
        values[_PARAMS_AT] = _cut(values[_PARAMS_AT])
    if not "".join(_texts_of(row)).isprintable():
        for at, kind in _TEXTS:
            values[at] = kind.process_bind_param(values[at], dialect)
    return tuple(values)


def _cut(params: str) -> str:
    """What stands for arguments that are too long to keep of every call."""
    said = f"cut: the arguments were {len(params):,} characters of JSON"
    return json.dumps({"portside": said, "beginning": params[:_BEGINNING_CHARS]})


def _audit_row(row: Row[Any]) -> AuditRow:
    stored = AuditRow(*row)
    return stored._replace(violations=tuple(stored.violations), adjustments=tuple(stored.adjustments))

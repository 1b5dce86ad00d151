"""An INSERT that yields to the row that is there; each dialect has its own construct for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite


def insert_if_absent(connection: Connection, table: Table, row: Mapping[str, Any], *, key: list[str]) -> bool:
    """Insert `row` unless one with the same `key` columns is there.

    Waits for another transaction that is inserting the same key.

    Returns:
        Whether it was inserted.
    """
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    statement = insert(table).values(**row).on_conflict_do_nothing(index_elements=key)
    # Drivers don't agree on an INSERT's row count; what it returns is certain.
    return connection.execute(statement.returning(table.c[key[0]])).first() is not None

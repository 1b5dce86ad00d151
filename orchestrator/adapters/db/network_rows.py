"""A network's values as rows of tables, within one transaction."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter
from sqlalchemy import ColumnElement, Connection, Select, Table, and_, insert, select, update

from orchestrator.domain.network.identities import NetworkName

T = TypeVar("T")


class Kind(Generic[T]):
    """Values of one kind as rows of one table; what is nested in them is JSON, as pydantic writes it."""

    def __init__(self, table: Table, kind: type[T], key: str = "id") -> None:
        self.table = table
        self.key = key
        self._adapter = TypeAdapter(kind)

    def row(self, network: NetworkName, value: T) -> dict[str, Any]:
        return {"network": network, **self._adapter.dump_python(value)}

    def value(self, row: Any) -> T:
        return self._adapter.validate_python(dict(row))


class Rows:
    """Statements over the rows of one network."""

    def __init__(self, connection: Connection, network: NetworkName) -> None:
        self.connection = connection
        self.network = network

    def select(self, kind: Kind[Any], *conditions: ColumnElement[bool]) -> Select[Any]:
        return select(kind.table).where(kind.table.c.network == self.network, *conditions)

    def all(self, kind: Kind[T], query: Select[Any]) -> list[T]:
        return [kind.value(row) for row in self.connection.execute(query).mappings()]

    def one(self, kind: Kind[T], *conditions: ColumnElement[bool]) -> T | None:
        row = self.connection.execute(self.select(kind, *conditions)).mappings().one_or_none()
        return None if row is None else kind.value(row)

    def put(self, kind: Kind[T], value: T, **derived: Any) -> None:
        row = kind.row(self.network, value) | derived
        same = and_(kind.table.c.network == self.network, kind.table.c[kind.key] == row[kind.key])
        # The network is locked: nobody adds the row between the two statements.
        if self.connection.execute(update(kind.table).where(same).values(row)).rowcount == 0:
            self.connection.execute(insert(kind.table).values(row))

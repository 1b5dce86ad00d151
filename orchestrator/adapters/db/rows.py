"""Values of the ports as rows: a column for each field, of the same name."""

from __future__ import annotations

import functools
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from sqlalchemy import Column, Table

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def row_of(value: DataclassInstance) -> dict[str, Any]:
    """Each field by name; unlike `dataclasses.asdict` it copies nothing."""
    return {name: getattr(value, name) for name in _names(type(value))}


def columns_of(table: Table, kind: type[DataclassInstance]) -> tuple[Column[Any], ...]:
    """The columns of `kind`'s fields, in its constructor's order."""
    return tuple(table.c[name] for name in _names(kind))


@functools.cache
def _names(kind: type[DataclassInstance]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))

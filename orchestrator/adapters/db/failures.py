"""What a driver's error means to a caller of a store."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager

import psycopg
from sqlalchemy.exc import DBAPIError, IntegrityError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from orchestrator.ports.errors import AlreadyExists, OwnerMissing, StoreError, StoreFull, StoreUnavailable

_TAKEN = frozenset({"SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_CONSTRAINT_UNIQUE", "23505"})
_NO_PARENT = frozenset({"SQLITE_CONSTRAINT_FOREIGNKEY", "23503"})
_FULL = frozenset({"SQLITE_FULL", "53100"})
_DAMAGED = frozenset({"SQLITE_CORRUPT", "SQLITE_NOTADB"})
# SQLite's plain SQLITE_ERROR is a wrong statement or a missing table: our own mistake.
_BUG = frozenset({"SQLITE_ERROR"})


@contextmanager
def told_as_store_errors() -> Generator[None]:
    """Raise what a port names in place of the driver's error; a bug goes on as it is."""
    try:
        yield
    except SQLAlchemyError as error:
        known = _store_error(error)
        if known is None:
            raise
        raise known from error


def _store_error(error: SQLAlchemyError) -> StoreError | None:
    if isinstance(error, PoolTimeout):
        return StoreUnavailable("the database is busy: no connection came free in time")
    if not isinstance(error, DBAPIError):
        return None
    code = _code(error.orig)
    if isinstance(error, IntegrityError):
        if code in _TAKEN:
            return AlreadyExists("the identifier is taken")
        return OwnerMissing("what this belongs to is not there") if code in _NO_PARENT else None
    if code in _DAMAGED:
        return StoreError("the file is damaged or not a SQLite database")
    if code in _BUG:
        return None
    if isinstance(error, OperationalError | InterfaceError) or error.connection_invalidated:
        return _unavailable(code)
    return None


def _unavailable(code: str | None) -> StoreUnavailable:
    if code in _FULL:
        return StoreFull(f"the disk is full: the database can't grow ({code})")
    return StoreUnavailable(f"the database does not answer ({code or 'connection failed'})")


def _code(error: BaseException | None) -> str | None:
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorname", None)
    if isinstance(error, psycopg.Error):
        return error.sqlstate
    return None

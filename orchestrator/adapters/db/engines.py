"""How connections are made: addresses, deadlines, and what each new connection is told first."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from orchestrator.ports.errors import StoreError

BEGIN = "portside_begin"
"""The execution option that holds the statement which begins a SQLite transaction."""

_CONNECT_S = 10
_SQLITE_CONNECTIONS = 5
_TURNS = 20
_POSTGRES_CONNECTIONS = 10


def parse_url(text: str) -> URL:
    """The address of a database.

    Args:
        text: `sqlite:///PATH` or `postgresql://USER:PASSWORD@HOST/NAME`; a driver's name is ignored.

    Raises:
        StoreError: it is neither.
    """
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        # The error holds the text, and the text may hold a password.
        raise StoreError("the database URL can't be read: write sqlite:///PATH or postgresql://...") from None
    match url.get_backend_name():
        case "sqlite" if url.database and url.database != ":memory:" and not url.query:
            return url.set(drivername="sqlite")
        case "sqlite":
            raise StoreError("a SQLite database needs the path of a file: write sqlite:///PATH")
        case "postgresql" | "postgres":
            return url.set(drivername="postgresql+psycopg")
        case other:
            raise StoreError(f"databases of the kind {other!r} are not supported: use sqlite or postgresql")


def create_sqlite_file(path: Path) -> None:
    """Make sure the file is there; a new one is for its owner alone, and so are its `-wal` and `-shm`.

    Raises:
        StoreError: it can't be opened.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise StoreError(f"the database {path} can't be opened: {error.strerror}") from error


def serving_engine(url: URL, *, deadline_s: float) -> AsyncEngine:
    """Pooled connections for the event loop."""
    if url.get_backend_name() == "sqlite":
        engine = create_async_engine(
            url.set(drivername="sqlite+aiosqlite"),
            hide_parameters=True,
            pool_size=_SQLITE_CONNECTIONS,
            max_overflow=0,
            pool_timeout=deadline_s,
            connect_args=_sqlite_arguments(deadline_s / 2),
        )
        _prepare_sqlite(engine.sync_engine, foreign_keys=True)
        return engine
    return create_async_engine(
        url,
        hide_parameters=True,
        pool_size=_POSTGRES_CONNECTIONS,
        max_overflow=0,
        pool_timeout=deadline_s,
        pool_pre_ping=True,
        connect_args=_postgres_arguments(statement_s=deadline_s, lock_s=deadline_s),
    )


def migrating_engine(url: URL, *, lock_s: float) -> Engine:
    """One blocking connection without a bound on statements: a migration takes what it takes."""
    if url.get_backend_name() == "sqlite":
        engine = create_engine(
            url, hide_parameters=True, poolclass=NullPool, connect_args=_sqlite_arguments(lock_s)
        )
        # Rebuilding a table drops the old one, and with enforcement on that would delete what refers to it.
        _prepare_sqlite(engine, foreign_keys=False)
        return engine.execution_options(**{BEGIN: "BEGIN IMMEDIATE"})
    arguments = _postgres_arguments(statement_s=0, lock_s=lock_s)
    return create_engine(url, hide_parameters=True, poolclass=NullPool, connect_args=arguments)


def _sqlite_arguments(busy_s: float) -> dict[str, Any]:
    # isolation_level None: sqlite3 begins nothing by itself, so that we say how a transaction begins.
    return {"timeout": busy_s, "isolation_level": None}


def _postgres_arguments(*, statement_s: float, lock_s: float) -> dict[str, Any]:
    settings = {
        "statement_timeout": int(statement_s * 1000),
        "lock_timeout": int(lock_s * 1000),
        "timezone": "UTC",
        "client_encoding": "UTF8",
    }
    return {
        "connect_timeout": _CONNECT_S,
        "application_name": "portside",
        "options": " ".join(f"-c {name}={value}" for name, value in settings.items()),
        # A peer that vanished without a word is noticed.
        "tcp_user_timeout": _CONNECT_S * 1000,
    }


def _write_ahead(cursor: sqlite3.Cursor) -> None:
    """Put the file into its mode, which it keeps. Of two who do so at once SQLite turns one away unasked."""
    for _ in range(_TURNS):
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            cursor.execute("BEGIN IMMEDIATE")  # this waits until whoever writes has done
            cursor.execute("COMMIT")
        else:
            return
    cursor.execute("PRAGMA journal_mode = WAL")


def _prepare_sqlite(engine: Engine, *, foreign_keys: bool) -> None:
    @event.listens_for(engine, "connect")
    def tell(connection: sqlite3.Connection, _record: object) -> None:
        cursor = connection.cursor()
        _write_ahead(cursor)
        # FULL: a committed transaction survives the loss of power too, not only a kill.
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.execute(f"PRAGMA foreign_keys = {'ON' if foreign_keys else 'OFF'}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql(connection.get_execution_options().get(BEGIN, "BEGIN"))

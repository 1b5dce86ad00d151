"""Transactions over one database, and its schema."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import Self, TypeVar

import anyio
import anyio.to_thread
from sqlalchemy import Connection
from sqlalchemy.engine import URL
from sqlalchemy.ext.asyncio import AsyncEngine

from orchestrator.adapters.db import schema
from orchestrator.adapters.db.engines import BEGIN, create_sqlite_file, parse_url, serving_engine
from orchestrator.adapters.db.failures import told_as_store_errors
from orchestrator.ports.errors import StoreUnavailable

T = TypeVar("T")


class Database:
    """Runs a store's statements, each call as one transaction.

    A store gives `read` or `write` a plain function over a connection. What that function raises undoes
    all it did. SQLite has one writer at a time, in order of arrival; in PostgreSQL the stores lock rows.

    A caller may be cancelled while it waits for its turn. A transaction that began runs to its end, so
    that no cancelled request leaves an unknown outcome or a broken connection behind.
    """

    def __init__(self, url: URL, *, deadline_s: float) -> None:
        self._url = url
        self._deadline_s = deadline_s
        self._engine = serving_engine(url, deadline_s=deadline_s)
        self._writing = self._engine.execution_options(**{BEGIN: "BEGIN IMMEDIATE"})
        self._turn: AbstractAsyncContextManager[object] = (
            anyio.Lock() if url.get_backend_name() == "sqlite" else nullcontext()
        )

    @classmethod
    async def open(cls, url: str, *, deadline_s: float = 30.0) -> Self:
        """A database; connections are made when they are needed.

        Args:
            url: `sqlite:///PATH` or `postgresql://USER:PASSWORD@HOST/NAME`.
            deadline_s: of the wait for a turn to write, and then of the transaction.

        Raises:
            StoreError: the URL is not one of those, or the SQLite file can't be opened.
        """
        parsed = parse_url(url)
        if parsed.get_backend_name() == "sqlite":
            await anyio.to_thread.run_sync(create_sqlite_file, Path(parsed.database or ""))
        return cls(parsed, deadline_s=deadline_s)

    async def close(self) -> None:
        """Let go of the connections."""
        with anyio.CancelScope(shield=True):
            await self._engine.dispose()

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in a transaction that only reads.

        Raises:
            StoreUnavailable: the database does not answer in time.
        """
        return await self._run(work, writes=False)

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in a transaction and commit; what it raises rolls back.

        Raises:
            StoreUnavailable: the database does not answer in time.
            AlreadyExists: a new row's identifier is taken.
            OwnerMissing: what a new row belongs to is not there.
        """
        try:
            with anyio.fail_after(self._deadline_s):
                async with self._turn:
                    return await self._run(work, writes=True)
        except TimeoutError as error:
            raise StoreUnavailable("the database is busy: no turn to write came in time") from error

    async def _run(self, work: Callable[[Connection], T], *, writes: bool) -> T:
        # A task of its own, as no scope holds off a plain `task.cancel()` of the caller.
        task = asyncio.create_task(self._transaction(work, self._writing if writes else self._engine))
        try:
            with anyio.CancelScope(shield=True):
                await asyncio.wait([task])
        except asyncio.CancelledError:
            await asyncio.wait([task])
            if not task.cancelled():
                task.exception()  # whoever would have been told is gone
            raise
        return task.result()

    async def _transaction(self, work: Callable[[Connection], T], engine: AsyncEngine) -> T:
        try:
            with told_as_store_errors(), anyio.fail_after(self._deadline_s):
                async with engine.begin() as connection:
                    return await connection.run_sync(work)
        except TimeoutError as error:
            raise StoreUnavailable(f"the database did not answer in {self._deadline_s:g} s") from error

    async def migrate(self) -> None:
        """Bring the schema up to date; processes that start together take turns.

        Raises:
            SchemaTooNew: a newer Portside migrated this database.
            StoreUnavailable: the database does not answer.
        """
        with told_as_store_errors():
            # Not abandoned: half a migration must not go on behind a caller that left.
            await anyio.to_thread.run_sync(schema.upgrade, self._url)

    async def check(self) -> bool:
        """Whether the schema is the one that this version of Portside needs.

        Raises:
            StoreUnavailable: the database does not answer.
        """
        wanted = await anyio.to_thread.run_sync(schema.wanted)
        return await self.read(schema.found) == wanted

"""Audit rows, written in groups off the path of the calls."""

from __future__ import annotations

import asyncio

import structlog

from orchestrator.ports.audit import AuditRow, AuditStore
from orchestrator.ports.errors import StoreError
from tool_registry.audit import AuditRecord

_GROUP_S = 0.2
_MAX_WAITING = 10_000
_log = structlog.get_logger(__name__)


class AuditLog:
    """Takes records at once and stores them in groups.

    Records of read-only calls may be lost by kill -9 (00-decisions 14); for the others `flush` is awaited
    before the call is answered.
    """

    def __init__(self, store: AuditStore) -> None:
        self._store = store
        self._waiting: list[AuditRow] = []
        self._writing = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def __call__(self, record: AuditRecord) -> None:
        """Take a record; it is stored within a quarter of a second."""
        if len(self._waiting) >= _MAX_WAITING:
            _log.error("audit_rows_dropped", waiting=len(self._waiting))
            self._waiting.clear()
        self._waiting.append(record)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._write_soon())

    async def flush(self) -> None:
        """Store everything taken so far.

        A caller that is cancelled leaves the writing to go on: rows are stored once.

        Raises:
            StoreError: it could not be stored; it is kept for the next try.
        """
        await asyncio.shield(asyncio.ensure_future(self._flush()))

    async def _flush(self) -> None:
        async with self._writing:
            rows, self._waiting = self._waiting, []
            if not rows:
                return
            try:
                await self._store.append(rows)
            except StoreError:
                self._waiting[:0] = rows
                raise

    async def close(self) -> None:
        """Store what is left."""
        if self._task is not None:
            self._task.cancel()
        await self.flush()

    async def _write_soon(self) -> None:
        while self._waiting:
            await asyncio.sleep(_GROUP_S)
            try:
                await self.flush()
            except StoreError as error:
                _log.warning("audit_rows_wait", reason=str(error), waiting=len(self._waiting))

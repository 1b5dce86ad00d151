"""`ExecutionStore` over SQL."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, select, update

from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.inserts import insert_if_absent
from orchestrator.adapters.db.rows import columns_of, row_of
from orchestrator.adapters.db.tables import executions
from orchestrator.domain.jobs import JobId
from orchestrator.ports.errors import OwnerMissing
from orchestrator.ports.executions import Execution, ExecutionState

_COLUMNS = columns_of(executions, Execution)


class SqlExecutionStore:
    """Remembered tool calls, one row each."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, execution: Execution) -> Execution | None:
        """Record that a call is about to run; of any number of callers one gets None.

        Returns:
            None when this call was recorded now; else the one that stands under its key.

        Raises:
            OwnerMissing: there is no such job.
        """
        row = row_of(execution) | {"state": execution.state.value}

        def work(connection: Connection) -> Execution | None:
            # The row that stood in the way may be released before it is read: then ours goes in.
            while not insert_if_absent(connection, executions, row, key=["job_id", "key"]):
                standing = _find(connection, execution.job_id, execution.key)
                if standing is not None:
                    return standing
            return None

        return await self._database.write(work)

    async def finish(self, job_id: JobId, key: str, answer: dict[str, Any]) -> None:
        """Store the answer; the first one stands.

        Raises:
            OwnerMissing: the call was never begun, or it went with its job.
        """

        def work(connection: Connection) -> None:
            statement = update(executions).where(*_running(job_id, key))
            values = {"state": ExecutionState.FINISHED.value, "answer": answer}
            changed = connection.execute(statement.values(**values)).rowcount
            if not changed and _find(connection, job_id, key) is None:
                raise OwnerMissing(f"there is no call {key} of job {job_id} to finish")

        await self._database.write(work)

    async def release(self, job_id: JobId, key: str) -> None:
        """Forget a call that did not run after all; a finished one stays."""
        statement = delete(executions).where(*_running(job_id, key))
        await self._database.write(lambda connection: connection.execute(statement))

    async def get(self, job_id: JobId, key: str) -> Execution | None:
        """The call under a key."""
        return await self._database.read(lambda connection: _find(connection, job_id, key))


def _running(job_id: JobId, key: str) -> tuple[ColumnElement[bool], ...]:
    return (
        executions.c.job_id == job_id,
        executions.c.key == key,
        executions.c.state == ExecutionState.RUNNING.value,
    )


def _find(connection: Connection, job_id: JobId, key: str) -> Execution | None:
    query = select(*_COLUMNS).where(executions.c.job_id == job_id, executions.c.key == key)
    row = connection.execute(query).one_or_none()
    if row is None:
        return None
    stored = Execution(*row)
    return replace(stored, state=ExecutionState(stored.state))

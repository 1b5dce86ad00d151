"""`DeliveryStore` over SQL."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import bindparam, select, update

from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.inserts import insert_if_absent
from orchestrator.adapters.db.rows import columns_of, row_of
from orchestrator.adapters.db.tables import deliveries
from orchestrator.domain.jobs import JobId
from orchestrator.ports.deliveries import PendingDelivery

_COLUMNS = columns_of(deliveries, PendingDelivery)


class SqlDeliveryStore:
    """Deliveries, one row each, kept after they were acknowledged so that none comes twice."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, delivery: PendingDelivery) -> None:
        """Store one; the same id again changes nothing.

        Raises:
            OwnerMissing: there is no such job.
        """
        row = row_of(delivery)
        await self._database.write(
            lambda connection: insert_if_absent(connection, deliveries, row, key=["job_id", "id"])
        )

    async def pending(self, job_id: JobId, *, limit: int = 50) -> list[PendingDelivery]:
        """Not acknowledged yet, oldest first."""
        query = (
            select(*_COLUMNS)
            .where(deliveries.c.job_id == job_id, deliveries.c.acknowledged.is_(False))
            .order_by(deliveries.c.number)
            .limit(limit)
        )
        return await self._database.read(
            lambda connection: [PendingDelivery(*row) for row in connection.execute(query)]
        )

    async def acknowledge(self, job_id: JobId, delivery_ids: Collection[str]) -> None:
        """These were received; unknown ids are ignored."""
        statement = (
            update(deliveries)
            .where(deliveries.c.job_id == job_id, deliveries.c.id == bindparam("received"))
            .values(acknowledged=True)
        )
        # Always in the same order: two callers that lock the same rows don't lock each other out.
        received = [{"received": delivery_id} for delivery_id in sorted(set(delivery_ids))]
        if received:
            await self._database.write(lambda connection: connection.execute(statement, received))

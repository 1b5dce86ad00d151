"""What every `DeliveryStore` does."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import anyio
import pytest

from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.deliveries import SqlDeliveryStore
from orchestrator.adapters.db.jobs import SqlJobStore
from orchestrator.domain.jobs import JobId
from orchestrator.ports.deliveries import DeliveryStore, PendingDelivery
from orchestrator.ports.errors import OwnerMissing
from tests.support.jobs import START, make_job

JOB = JobId("job-1")


@pytest.fixture
async def deliveries(database: Database) -> DeliveryStore:
    await SqlJobStore(database).add(make_job("job-1"))
    await SqlJobStore(database).add(make_job("job-2"))
    return SqlDeliveryStore(database)


def make_delivery(delivery_id: str = "d1", **changes: Any) -> PendingDelivery:
    given: dict[str, Any] = {
        "id": delivery_id,
        "job_id": JOB,
        "kind": "prompt",
        "text": "Hello \x00 \ud800",
        "created_at": START,
    }
    return PendingDelivery(**(given | changes))


async def test_deliveries_come_in_the_order_they_were_added(deliveries: DeliveryStore):
    first = make_delivery("z", created_at=START + timedelta(seconds=5), thread_id="t", task_id="k")
    second = make_delivery("a")
    await deliveries.add(first)
    await deliveries.add(second)
    assert await deliveries.pending(JOB) == [first, second]
    assert await deliveries.pending(JOB, limit=1) == [first]


async def test_a_delivery_is_handed_out_until_it_is_acknowledged(deliveries: DeliveryStore):
    """BR-123: reading a message does not acknowledge it."""
    await deliveries.add(make_delivery())
    assert await deliveries.pending(JOB) == await deliveries.pending(JOB) == [make_delivery()]
    await deliveries.acknowledge(JOB, ["d1"])
    assert await deliveries.pending(JOB) == []


async def test_the_same_id_again_changes_nothing(deliveries: DeliveryStore):
    """BR-124: a delivery that is sent twice is received once, even after it was acknowledged."""
    await deliveries.add(make_delivery(text="first"))
    await deliveries.add(make_delivery(text="second"))
    assert [delivery.text for delivery in await deliveries.pending(JOB)] == ["first"]
    await deliveries.acknowledge(JOB, ["d1"])
    await deliveries.add(make_delivery(text="third"))
    assert await deliveries.pending(JOB) == []


async def test_only_a_jobs_own_deliveries_are_acknowledged(deliveries: DeliveryStore):
    await deliveries.add(make_delivery("d1"))
    await deliveries.acknowledge(JobId("job-2"), ["d1"])
    await deliveries.acknowledge(JOB, ["unknown", "a\x00"])
    await deliveries.acknowledge(JOB, [])
    assert len(await deliveries.pending(JOB)) == 1


async def test_very_many_are_acknowledged_at_once(deliveries: DeliveryStore):
    await deliveries.add(make_delivery("d1"))
    await deliveries.acknowledge(JOB, [f"unknown-{n}" for n in range(40_000)] + ["d1", "d1"])
    assert await deliveries.pending(JOB) == []


async def test_adding_one_delivery_at_once_stores_it_once(deliveries: DeliveryStore, database_url: str):
    other = await Database.open(database_url)
    async with anyio.create_task_group() as group:
        for store in (deliveries, SqlDeliveryStore(other)) * 5:
            group.start_soon(store.add, make_delivery())
    await other.close()
    assert await deliveries.pending(JOB) == [make_delivery()]


async def test_nothing_is_delivered_to_a_job_that_is_not_there(deliveries: DeliveryStore):
    with pytest.raises(OwnerMissing):
        await deliveries.add(make_delivery(job_id=JobId("gone")))


async def test_deliveries_go_with_their_job(deliveries: DeliveryStore, database: Database):
    await deliveries.add(make_delivery())
    await SqlJobStore(database).delete(JOB)
    assert await deliveries.pending(JOB) == []

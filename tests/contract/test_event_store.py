"""What every `EventStore` does (PD-6)."""

from __future__ import annotations

from datetime import timedelta

import anyio
import pytest

from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.events import SqlEventStore
from orchestrator.adapters.db.jobs import SqlJobStore
from orchestrator.domain.jobs import JobId
from orchestrator.ports.errors import OwnerMissing
from orchestrator.ports.events import EventStore, NewEvent, StoredEvent
from tests.support.jobs import START, make_job

JOB = JobId("job-1")


@pytest.fixture
async def events(database: Database) -> EventStore:
    jobs = SqlJobStore(database)
    await jobs.add(make_job("job-1"))
    await jobs.add(make_job("job-2"))
    return SqlEventStore(database)


def make_event(seq: int | None = None, source: str = "worker:1", **data: object) -> NewEvent:
    return NewEvent(source, seq, "log", START + timedelta(microseconds=seq or 0), data)


async def test_events_come_back_in_order_with_positions_from_one(events: EventStore):
    new = [make_event(7, text="a\x00\ud800"), make_event(5, n=[1, None]), make_event(None, "orchestrator")]
    stored = await events.append(JOB, new)
    assert stored == [
        StoredEvent(1, "worker:1", "log", new[0].at, {"text": "a\x00\ud800"}),
        StoredEvent(2, "worker:1", "log", new[1].at, {"n": [1, None]}),
        StoredEvent(3, "orchestrator", "log", START, {}),
    ]
    assert await events.read(JOB) == stored


async def test_each_job_counts_for_itself(events: EventStore):
    await events.append(JOB, [make_event(1), make_event(2)])
    stored = await events.append(JobId("job-2"), [make_event(1)])
    assert [event.position for event in stored] == [1]
    assert len(await events.read(JOB)) == 2


async def test_a_source_and_number_are_stored_once(events: EventStore):
    first = await events.append(JOB, [make_event(1, n="first"), make_event(2)])
    again = await events.append(JOB, [make_event(2), make_event(1, n="again"), make_event(3), make_event(3)])
    assert [(event.position, event.source) for event in again] == [(3, "worker:1")]
    assert await events.read(JOB) == first + again


async def test_another_attempt_has_numbers_of_its_own(events: EventStore):
    await events.append(JOB, [make_event(1, "worker:1")])
    assert len(await events.append(JOB, [make_event(1, "worker:2")])) == 1


async def test_events_without_a_number_are_all_stored(events: EventStore):
    same = make_event(None, "orchestrator")
    await events.append(JOB, [same, same])
    await events.append(JOB, [same])
    assert [event.position for event in await events.read(JOB)] == [1, 2, 3]


async def test_reading_goes_on_after_a_position_and_is_bounded(events: EventStore):
    await events.append(JOB, [make_event(n) for n in range(10)])
    assert [event.position for event in await events.read(JOB, after=3, limit=4)] == [4, 5, 6, 7]
    assert await events.read(JOB, after=10) == []
    assert await events.read(JOB, after=10**30) == []
    assert await events.read(JobId("nobody")) == []


async def test_nothing_is_appended_to_a_job_that_is_not_there(events: EventStore):
    with pytest.raises(OwnerMissing):
        await events.append(JobId("gone"), [make_event(1)])
    assert await events.append(JOB, []) == []


async def test_two_sources_that_append_at_once_leave_no_gap(events: EventStore, database_url: str):
    """Positions grow by one, whoever appends; each source's own order is kept."""
    other = await Database.open(database_url)

    async def append(store: EventStore, source: str) -> None:
        for batch in range(15):
            await store.append(JOB, [make_event(2 * batch, source), make_event(2 * batch + 1, source)])

    async with anyio.create_task_group() as group:
        group.start_soon(append, events, "worker:1")
        group.start_soon(append, SqlEventStore(other), "orchestrator")
        group.start_soon(append, events, "worker:2")
    await other.close()
    stored = await events.read(JOB)
    assert [event.position for event in stored] == list(range(1, 91))
    for source in ("worker:1", "orchestrator", "worker:2"):
        times = [event.at for event in stored if event.source == source]
        assert times == sorted(times)


async def test_the_same_batch_sent_twice_at_once_is_stored_once(events: EventStore, database_url: str):
    other = await Database.open(database_url)
    batch = [make_event(n) for n in range(20)]
    async with anyio.create_task_group() as group:
        for store in (events, SqlEventStore(other)) * 3:
            group.start_soon(store.append, JOB, batch)
    await other.close()
    assert [event.position for event in await events.read(JOB)] == list(range(1, 21))


async def test_events_go_with_their_job(events: EventStore, database: Database):
    await events.append(JOB, [make_event(1)])
    await events.append(JobId("job-2"), [make_event(1)])
    assert await SqlJobStore(database).delete(JOB) is True
    assert await events.read(JOB) == []
    assert len(await events.read(JobId("job-2"))) == 1

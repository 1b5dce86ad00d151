"""All stores together, as the composition root opens them (PD-6)."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.adapters.db.stores import Stores, open_stores
from orchestrator.domain.jobs import JobId
from orchestrator.ports.errors import StoreError
from orchestrator.ports.events import NewEvent
from orchestrator.ports.signing_keys import SigningKey
from tests.fakes.frozen_clock import FrozenClock
from tests.support.jobs import START, make_job
from tests.support.sealing import make_sealer


async def test_what_was_stored_is_there_after_a_restart(database_url: str):
    sealer, clock = make_sealer(), FrozenClock(START)
    stores = await open_stores(database_url, sealer=sealer, clock=clock)
    key = SigningKey("k1", "PEM", START)
    await stores.jobs.add(make_job())
    await stores.events.append(JobId("job-1"), [NewEvent("worker:1", 1, "log", START, {})])
    await stores.secrets.set("KEY", "value")
    await stores.signing_keys.add(key)
    await stores.close()
    again = await open_stores(database_url, sealer=sealer, clock=clock)
    assert await again.database.check() is True
    assert await again.jobs.get(JobId("job-1")) == make_job()
    assert len(await again.events.read(JobId("job-1"))) == 1
    assert await again.secrets.get("KEY") == "value"
    assert await again.signing_keys.list() == [key]
    await again.close()


async def test_opening_leaves_the_schema_as_it_is(tmp_path: Path):
    stores = await open_stores(f"sqlite:///{tmp_path}/new.db", sealer=make_sealer(), clock=FrozenClock(START))
    assert await stores.database.check() is False
    await stores.close()


async def test_a_url_that_can_not_be_used_opens_nothing():
    with pytest.raises(StoreError):
        await open_stores("mysql://h/d", sealer=make_sealer(), clock=FrozenClock(START))


async def test_the_fixture_for_services_is_migrated(sqlite_stores: Stores):
    assert await sqlite_stores.database.check() is True

"""The routing sweep comes round, whatever else goes on (WN-4)."""

from __future__ import annotations

import asyncio

from orchestrator.services.network_autostart import Autostart, AutostartRules
from orchestrator.services.network_sweep import NetworkSweep
from tests.fakes.network_jobs import FakeJobs
from tests.fakes.network_store import MemoryNetworkStore
from tests.support.deadline import eventually
from tests.support.networks import World


async def test_who_is_heard_of_no_more_loses_its_offers_also_while_there_is_always_something_new():
    """BR-133: a hint that comes during every look holds no sweep up."""
    store = MemoryNetworkStore()
    world = World(store)
    a = await world.instance("a-1", "a")
    await world.instance("b-1", "b")
    withdrawn: list[None] = []
    rules = AutostartRules(most=1, default_model=str)
    autostart = Autostart(store, FakeJobs(), world.clock, world.ids, rules)
    sweep = NetworkSweep(world.service, lambda: withdrawn.append(None), autostart=autostart, period_s=0.01)

    async def announce() -> None:
        while True:
            sweep.wake()
            await asyncio.sleep(0)

    announcing = asyncio.create_task(announce())
    sweep.start()
    task = (await a("delegate", objective="?", toAgent="b"))["task"]
    for number in (1, 2, 3):
        await world.service.heartbeat("b-1")
        assert (await a("task_get", taskId=task["task_id"]))["task"]["state"] == "offered"
        world.clock.advance(301)
        await eventually(lambda number=number: len(withdrawn) == number, 60.0)
    await sweep.close()
    announcing.cancel()
    await asyncio.gather(announcing, return_exceptions=True)

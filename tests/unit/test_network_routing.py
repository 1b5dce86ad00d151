"""Tasks find those that can take them, in chains that close no loop (WN-4)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from orchestrator.domain.network.agents import Responsibility
from tests.fakes.network_store import MemoryNetworkStore
from tests.support.network_tasks import delegate, move, refused
from tests.support.networks import Caller, World


@pytest.fixture
def world() -> World:
    return World(MemoryNetworkStore())


async def state_of(caller: Caller, task: dict[str, Any]) -> tuple[str, str]:
    now = (await caller("task_get", taskId=task["task_id"]))["task"]
    return now["state"], now["reason"]


async def test_a_pending_task_is_offered_as_soon_as_somebody_can_take_it(world: World):
    """BR-132: what waits for an agent is offered when one appears, without anybody asking."""
    boss = await world.instance("boss")
    await world.agent("builder")
    task = await delegate(boss, toAgent="builder")
    late = await world.instance("late", "builder")
    (offer,) = (await late("inbox"))["items"]
    assert offer["task"]["task_id"] == task["task_id"]
    assert await state_of(boss, task) == ("offered", "")
    assert (await move(late, task, "accepted"))["attempt"] == 1


async def test_work_that_comes_back_is_offered_to_the_others_at_once(world: World):
    """BR-126: attempt 2 is another instance's; a second end fails the task with the history."""
    boss = await world.instance("boss")
    for name in ("i1", "i2"):
        await world.instance(name, "builder")
    task = await delegate(boss, toAgent="builder")
    callers = {name: Caller(world.tools, "local", "builder", name) for name in ("i1", "i2")}
    await move(callers["i1"], task, "accepted")
    await world.service.leave("i1", "killed")
    assert await state_of(boss, task) == ("offered", "")
    assert (await move(callers["i2"], task, "accepted"))["attempt"] == 2
    await world.service.leave("i2", "killed too")
    assert await state_of(boss, task) == ("failed", "the instance that worked on it ended: killed too")


async def test_an_offer_lapses_a_minute_after_its_receipt_and_comes_again_ten_minutes_later(world: World):
    boss, worker = await world.instance("boss"), await world.instance("w", "builder")
    task = await delegate(boss, toAgent="builder")

    async def later(seconds: float) -> tuple[str, str]:
        world.clock.advance(seconds)
        await world.service.heartbeat("w")
        await world.service.sweep()
        return await state_of(boss, task)

    assert await later(240) == ("offered", ""), "who has not seen it has not passed it by"
    await worker("inbox", call_id="1")
    await world.service.inbox.acknowledge("w", ["1"])
    assert await later(59) == ("offered", "")
    assert await later(1) == ("pending", "offered to builder, and not accepted within 60 seconds")
    assert (await refused(move(worker, task, "accepted")))["code"] == "illegal_transition"
    assert await later(300) == ("pending", "offered to builder, and not accepted within 60 seconds")
    assert await later(240) == ("offered", "")
    assert [one["kind"] for one in (await worker("inbox", call_id="2"))["items"]] == ["task_offer"]


async def test_who_declined_is_not_offered_it_again(world: World):
    boss, worker = await world.instance("boss"), await world.instance("w", "builder")
    task = await delegate(boss, toAgent="builder")
    await move(worker, task, "cancelled", "not mine")
    assert await world.service.sweep() == []
    assert await state_of(boss, task) == ("pending", "declined by builder: not mine")
    await world.instance("other", "builder")
    assert (await boss("task_get", taskId=task["task_id"]))["task"]["offered_to"] == ["other"]


async def test_the_sweep_takes_offers_back_from_the_silent(world: World):
    """BR-133: an instance that went silent keeps no offer, and one that speaks again gets it again."""
    boss, silent = await world.instance("boss"), await world.instance("w", "builder")
    task = await delegate(boss, toAgent="builder")
    world.clock.advance(301)
    await world.service.sweep()
    assert await state_of(boss, task) == (
        "pending",
        "another instance of 'builder' is needed and none is available now",
    )
    assert (await silent("inbox"))["items"] == []
    await world.service.heartbeat("w")
    assert [one["kind"] for one in (await silent("inbox"))["items"]] == ["task_offer"]


async def accepted_from(giver: Caller, taker: Caller) -> dict[str, Any]:
    task = await delegate(giver, toAgent=taker.agent)
    await move(taker, task, "accepted")
    return task


async def test_a_look_reads_only_what_could_change(world: World):
    """PD-65: what waits for agents that are not there costs a look nothing, and too many offers are not made."""
    boss = await world.instance("boss")
    await world.agent("away")
    for _ in range(60):
        await delegate(boss, toAgent="away")
    assert await world.service.movable() == []
    builder = await world.instance("builder-1", "builder")
    tasks = [await delegate(boss, toAgent="builder") for _ in range(52)]
    assert len(await world.service.movable()) == 50
    assert await state_of(boss, tasks[-1]) == ("pending", "builder has 50 offers to decide about first")
    await move(builder, tasks[0], "accepted")
    assert [(await state_of(boss, one))[0] for one in tasks[-2:]] == ["offered", "pending"]


async def test_work_never_goes_back_to_whose_work_it_is(world: World):
    """BR-131: the second entry of an agent in a chain is refused, whoever closes the loop."""
    a, b, c = [await world.instance(f"{name}1", name) for name in "abc"]
    await world.agent("d", groups=("crew",), responsibilities=(Responsibility("billing-db"),))
    await accepted_from(a, b)
    await accepted_from(b, c)
    for target in ("a", "b"):
        no = await refused(c("delegate", objective="You do it.", toAgent=target))
        assert (no["code"], no["chain"]) == ("collaboration_loop_detected", ["a", "b"])
        no = await refused(c("delegate", objective="You do it.", toInstance=f"{target}1"))
        assert no["code"] == "collaboration_loop_detected"
    assert (await delegate(c, toAgent="d"))["state"] == "pending"
    assert (await delegate(c, resource="billing-db"))["state"] == "pending"
    # What is done is no part of a chain any more.
    own = await world.instance("c2", "c")
    assert (await delegate(own, toAgent="a"))["state"] == "offered"


async def test_an_agent_gives_work_to_an_instance_of_its_own_once(world: World):
    """BR-131: A to A to A is refused."""
    first, second = await world.instance("i1"), await world.instance("i2")
    await world.instance("i3")
    await accepted_from(first, second)
    assert (await refused(second("delegate", objective="?", toAgent="coder")))["code"] == (
        "collaboration_loop_detected"
    )


async def test_the_sixth_hop_is_refused(world: World):
    """BR-131: a chain that closes no loop is bounded too."""
    agents = [await world.instance(f"{name}1", name) for name in "abcdef"]
    for giver, taker in pairwise(agents):
        await accepted_from(giver, taker)
    await world.agent("g")
    no = await refused(agents[5]("delegate", objective="?", toAgent="g"))
    assert (no["code"], no["hops"], no["max_hops"]) == ("collaboration_chain_too_long", 6, 5)


async def test_the_work_of_one_root_is_split_into_so_many_tasks_and_no_more(world: World):
    """BR-131: fan-out stops at the budget of the root, however deep the tasks lie and whoever makes them."""
    boss, lead, left, right = [await world.instance(f"{name}1", name) for name in ("boss", "lead", "l", "r")]
    await world.agent("away")
    root = await accepted_from(boss, lead)
    await accepted_from(lead, left)
    await accepted_from(lead, right)
    for maker in [left, right] * 24:
        await delegate(maker, toAgent="away")
    for maker in (left, right, lead):
        no = await refused(maker("delegate", objective="more", toAgent="away"))
        assert (no["code"], no["root"], no["max_tasks"]) == ("delegation_budget_spent", root["task_id"], 50)
    assert (await delegate(boss, toAgent="away"))["state"] == "pending"


async def test_cancelling_a_task_cancels_what_was_delegated_for_it(world: World):
    """BR-131: cancelling the root cancels all descendants."""
    a, b, c = [await world.instance(f"{name}1", name) for name in "abc"]
    root = await accepted_from(a, b)
    child = await accepted_from(b, c)
    await world.agent("d")
    grandchild = await delegate(c, toAgent="d")
    other = await delegate(a, toAgent="d")
    await move(a, root, "cancelled", "changed our mind")
    assert await state_of(a, child) == (
        "cancelled", f"the work that it was for was cancelled: {root['task_id']}",
    )  # fmt: skip
    assert (await state_of(a, grandchild))[0] == "cancelled"
    assert (await state_of(a, other))[0] == "pending"
    assert (await refused(move(c, child, "working")))["code"] == "illegal_transition"

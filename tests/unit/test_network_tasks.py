"""Tasks through the tools: delegated, offered, taken by one, reported on, given back (WN-4)."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.domain.network.agents import Responsibility
from orchestrator.domain.network.tasks import TITLE_CHARS
from tests.fakes.network_store import MemoryNetworkStore
from tests.support.networks import Caller, Refusal, World


@pytest.fixture
def world() -> World:
    return World(MemoryNetworkStore())


async def delegate(caller: Caller, **arguments: Any) -> dict[str, Any]:
    return (await caller("delegate", **({"objective": "Build it."} | arguments)))["task"]


async def move(
    caller: Caller, task: dict[str, Any], status: str, reason: str = "", **more: Any
) -> dict[str, Any]:
    extra = {"reason": reason} if reason else {}
    return (await caller("task_update", taskId=task["task_id"], status=status, **extra, **more))["task"]


async def refused(call: Any) -> dict[str, Any]:
    with pytest.raises(Refusal) as no:
        await call
    return no.value.result


async def test_a_task_goes_from_offer_to_evidence(world: World):
    boss, worker = await world.instance("i1"), await world.instance("i2", "builder")
    task = await delegate(boss, toAgent="Builder", acceptanceCriteria=["It runs."], resource="git@h.org:o/r")
    assert (task["state"], task["offered_to"], task["resource"]) == ("offered", ["i2"], "h.org/o/r")
    (offer,) = (await worker("inbox"))["items"]
    assert offer["kind"] == "task_offer"
    assert offer["task"]["objective"] == "Build it."
    assert "network_task_update" in offer["note"]
    await move(worker, task, "accepted")
    await move(worker, task, "working")
    await move(worker, task, "blocked", "no key")
    await move(worker, task, "working")
    done = await move(worker, task, "completed", "tests pass")
    assert done["assignee"] == {"agent": "builder", "instance_id": "i2"}
    record = await boss("task_get", taskId=task["task_id"])
    assert [(one["state"], one["reason"]) for one in record["history"]] == [
        ("offered", ""),
        ("accepted", ""),
        ("working", ""),
        ("blocked", "no key"),
        ("working", ""),
        ("completed", "tests pass"),
    ]
    assert record["history"][0]["by"] == {"agent": "coder", "instance_id": "i1"}
    assert record["history"][-1]["by"] == {"agent": "builder", "instance_id": "i2"}
    assert record["task"]["acceptance_criteria"] == ["It runs."]


async def test_a_known_target_without_an_available_instance_leaves_the_task_pending_with_the_reason(
    world: World,
):
    """BR-132: a task never waits without saying why."""
    boss = await world.instance("i1")
    await world.agent("builder", groups=("crew",))
    task = await delegate(boss, toAgent="builder")
    assert task["state"] == "pending"
    assert task["reason"] == "another instance of 'builder' is needed and none is available now"
    assert "group 'crew'" in (await delegate(boss, toAgent="crew"))["reason"]
    assert "neither a target nor a resource" in (await delegate(boss))["reason"]
    assert "responsible for 'billing-db'" in (await delegate(boss, resource="billing-db"))["reason"]
    assert "'coder'" in (await delegate(boss, toAgent="coder"))["reason"]


async def test_only_available_instances_are_offered_a_task(world: World):
    """BR-133: never heard from, stale, draining and ended instances are offered nothing."""
    boss = await world.instance("i1")
    for instance_id in ("stale", "fresh", "draining", "ended"):
        await world.instance(instance_id, "builder")
    await world.service.join("local", "builder", "silent", "job")
    world.clock.advance(600)
    for instance_id in ("fresh", "draining", "ended"):
        await world.service.heartbeat(instance_id)
    await world.service.drain("draining")
    await world.service.leave("ended", "done")
    await world.service.heartbeat("ended")
    assert (await delegate(boss, toAgent="builder"))["offered_to"] == ["fresh"]
    await world.service.heartbeat("silent")
    assert (await delegate(boss, toAgent="builder"))["offered_to"] == ["fresh", "silent"]
    assert (await delegate(boss, toInstance="stale"))["state"] == "pending"
    assert (await refused(boss("delegate", objective="?", toInstance="ended")))["code"] == "target_ended"


async def test_the_first_to_accept_gets_the_task_and_the_others_are_told_who_did(world: World):
    boss = await world.instance("i1")
    await world.agent("builder", groups=("crew",))
    first, second = await world.instance("i2", "builder"), await world.instance("i3", "builder")
    task = await delegate(boss, toAgent="crew")
    assert task["offered_to"] == ["i2", "i3"]
    await second("inbox", call_id="before")
    await move(first, task, "accepted")
    taken = await refused(move(second, task, "accepted"))
    assert taken["code"] == "task_taken"
    assert taken["assignee"] == {"agent": "builder", "instance_id": "i2"}
    assert (await second("inbox", call_id="after"))["items"] == []


async def test_a_lapsed_offer_leaves_the_inbox(world: World):
    boss, worker = await world.instance("i1"), await world.instance("i2", "builder")
    task = await delegate(boss, toAgent="builder")
    await boss("ask", body="Still there?", toAgent="builder")
    await move(boss, task, "cancelled", "not needed")
    assert [item["kind"] for item in (await worker("inbox"))["items"]] == ["ask"]


async def test_an_offered_agent_declines_by_cancelling(world: World):
    boss = await world.instance("i1")
    workers = [await world.instance(name, "builder") for name in ("i2", "i3")]
    task = await delegate(boss, toAgent="builder")
    left = await move(workers[0], task, "cancelled", "busy")
    assert (left["state"], left["offered_to"]) == ("offered", ["i3"])
    assert (await refused(move(workers[0], task, "accepted")))["code"] == "not_offered"
    back = await move(workers[1], task, "cancelled", "busy too")
    assert (back["state"], back["reason"]) == ("pending", "declined by builder: busy too")


@pytest.mark.parametrize("status", ["blocked", "completed", "failed"])
async def test_a_status_that_needs_a_reason_is_refused_without_one(world: World, status: str):
    boss, worker = await world.instance("i1"), await world.instance("i2", "builder")
    task = await delegate(boss, toAgent="builder")
    await move(worker, task, "accepted")
    await move(worker, task, "working")
    assert (await refused(move(worker, task, status)))["code"] == "reason_required"
    assert (await refused(move(worker, task, status, "  ")))["code"] == "reason_required"
    assert (await move(worker, task, status, "because"))["state"] == status


async def test_only_the_assignee_reports_and_only_the_two_parties_cancel(world: World):
    boss, worker = await world.instance("i1"), await world.instance("i2", "builder")
    stranger = await world.instance("i3", "stranger")
    task = await delegate(boss, toAgent="builder")
    await move(worker, task, "accepted")
    for caller in (boss, stranger):
        assert (await refused(move(caller, task, "working")))["code"] == "not_yours"
    assert (await refused(move(stranger, task, "cancelled")))["code"] == "not_yours"
    successor = await world.instance("i4", "coder")
    assert (await move(successor, task, "cancelled", "changed our mind"))["state"] == "cancelled"
    ended = await refused(move(worker, task, "working"))
    assert (ended["code"], ended["allowed"]) == ("illegal_transition", [])


async def test_an_instance_that_ends_gives_its_work_back(world: World):
    """BR-126: work of a dead instance is pending again, and its history says why."""
    boss = await world.instance("i1")
    worker = await world.instance("i2", "builder")
    task = await delegate(boss, toAgent="builder")
    await move(worker, task, "accepted")
    await world.service.leave("i2", "out of memory")
    record = await boss("task_get", taskId=task["task_id"])
    assert (record["task"]["state"], record["task"]["assignee"]) == ("pending", None)
    assert record["task"]["reason"] == "the instance that worked on it ended: out of memory"
    assert record["history"][-1]["by"] is None
    assert (await refused(move(worker, task, "working")))["code"] == "not_a_member"


async def test_an_offer_to_an_instance_that_ends_returns_at_once(world: World):
    """BR-133: offered and not accepted work does not wait for a dead instance."""
    boss = await world.instance("i1")
    await world.instance("i2", "builder")
    task = await delegate(boss, toAgent="builder")
    await world.service.leave("i2", "killed")
    record = (await boss("task_get", taskId=task["task_id"]))["task"]
    assert (record["state"], record["offered_to"]) == ("pending", [])
    heir = await world.instance("i3", "builder")
    (offer,) = (await heir("inbox"))["items"]
    assert offer["task"]["offered_to"] == ["i3"]


async def test_a_repeated_call_makes_one_task_and_one_change(world: World):
    boss, worker = await world.instance("i1"), await world.instance("i2", "builder")
    task = await delegate(boss, call_id="d", toAgent="builder")
    assert await delegate(boss, call_id="d", toAgent="builder") == task
    assert len((await worker("inbox"))["items"]) == 1
    for _ in range(2):
        assert (await move(worker, task, "accepted", call_id="a"))["attempt"] == 1
    assert len((await boss("task_get", taskId=task["task_id"]))["history"]) == 2


async def test_the_title_is_the_objectives_first_line_unless_one_is_given(world: World):
    boss = await world.instance("i1")
    long = await delegate(boss, objective="word " * 100 + "\nmore")
    assert len(long["title"]) <= TITLE_CHARS
    assert long["title"].endswith("...")
    assert (await delegate(boss, objective="\n Fix it. \nNow."))["title"] == "Fix it."
    assert (await delegate(boss, title="Mine"))["title"] == "Mine"


async def test_unknown_targets_and_oneself_are_refused(world: World):
    boss = await world.instance("i1")
    for target in ("nobody", "no body"):
        assert (await refused(boss("delegate", objective="?", toAgent=target)))["code"] == "not_found"
    assert (await refused(boss("delegate", objective="?", toInstance="i1")))["code"] == "self_request"
    assert (await boss("discover"))["tasks"] == []


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
    await world.service.mail.acknowledge_inbox("w", "1")
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
    for giver, taker in zip(agents, agents[1:], strict=False):
        await accepted_from(giver, taker)
    await world.agent("g")
    no = await refused(agents[5]("delegate", objective="?", toAgent="g"))
    assert (no["code"], no["hops"], no["max_hops"]) == ("collaboration_chain_too_long", 6, 5)


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

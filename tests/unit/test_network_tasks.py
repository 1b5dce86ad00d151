"""Tasks through the tools: delegated, offered, taken by one, reported on, given back (WN-4)."""

from __future__ import annotations

import pytest

from orchestrator.domain.network.tasks import TITLE_CHARS
from tests.fakes.network_store import MemoryNetworkStore
from tests.support.network_tasks import delegate, move, refused
from tests.support.networks import World


@pytest.fixture
def world() -> World:
    return World(MemoryNetworkStore())


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

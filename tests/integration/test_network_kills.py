"""Processes killed at every point of a delivery: nothing is lost, nothing comes twice (WN-3)."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.network_store import SqlNetworkStore
from tests.support.network_hands import killed
from tests.support.networks import Caller, RandomIds, World

WHEN = ["inside", "after"]


@pytest.fixture
async def world(database: Database) -> World:
    return World(SqlNetworkStore(database), ids=RandomIds())


@pytest.fixture
async def a(world: World) -> Caller:
    return await world.instance("a-1", "a")


@pytest.fixture
async def b(world: World) -> Caller:
    return await world.instance("b-1", "b")


async def bodies(caller: Caller, call_id: str = "") -> list[str]:
    return [item["body"] for item in (await caller("inbox", call_id=call_id))["items"]]


@pytest.mark.parametrize("when", WHEN)
async def test_a_send_that_was_cut_off_is_sent_once(database_url: str, a: Caller, b: Caller, when: str):
    """BR-123, BR-124: killed before or after the message was stored; the sender tries again."""
    await killed(database_url, when, "a-1", "ask", call_id="1:s", body="m", toAgent="b")
    await a("ask", call_id="1:s", body="m", toAgent="b")
    assert await bodies(b, "1:i") == ["m"]
    assert await bodies(b, "1:j") == []


@pytest.mark.parametrize("when", WHEN)
async def test_a_fetch_that_was_cut_off_is_handed_out_again(
    database_url: str, a: Caller, b: Caller, when: str
):
    """BR-123: killed before or after the messages were held; the reader asks again with the same call."""
    for body in ("m1", "m2"):
        await a("ask", body=body, toAgent="b")
    await killed(database_url, when, "b-1", "inbox", call_id="1:i")
    assert await bodies(b, "1:i") == ["m1", "m2"]


@pytest.mark.parametrize("when", WHEN)
async def test_a_push_that_was_cut_off_is_pushed_again(
    database_url: str, world: World, a: Caller, b: Caller, when: str
):
    """BR-123, BR-124: killed between the decision to push and the worker's reading of it."""
    await a("ask", body="m", toAgent="b")
    await killed(database_url, when, "b-1", "push")
    (item,) = await world.service.inbox.push("b-1")
    assert item.message is not None
    assert (item.message.body, item.delivery.handed_out) == ("m", 1)
    assert await bodies(b) == []


@pytest.mark.parametrize("when", WHEN)
async def test_an_acknowledgement_that_was_cut_off_is_acknowledged_again(
    database_url: str, world: World, a: Caller, b: Caller, when: str
):
    """BR-123: the same delivery comes again by the same id, or is done; the worker knows the id."""
    sent = {"call_id": "1:s", "body": "m", "toAgent": "b"}
    await a("ask", **sent)
    (item,) = await world.service.inbox.push("b-1")
    await killed(database_url, when, "b-1", "acknowledge_push", ids=[item.delivery.id])
    again = [one.delivery.id for one in await world.service.inbox.push("b-1")]
    assert again == ([item.delivery.id] if when == "inside" else [])
    await world.service.inbox.acknowledge_push("b-1", [item.delivery.id])
    assert await world.service.inbox.push("b-1") == []
    assert [one["state"] for one in (await a("ask", **sent))["recipients"]] == ["delivered"]


@pytest.mark.parametrize("when", WHEN)
async def test_the_end_of_a_worker_that_was_cut_off_is_noted_again(
    database_url: str, world: World, a: Caller, b: Caller, when: str
):
    """BR-123, BR-126: its mail and work are the next worker's, once."""
    task = (await a("delegate", objective="?", toInstance="b-1"))["task"]["task_id"]
    await b("task_update", taskId=task, status="accepted")
    await a("ask", body="m", toInstance="b-1")
    assert len(await world.service.inbox.push("b-1")) == 1
    await killed(database_url, when, "b-1", "leave")
    await world.service.leave("b-1", "killed")
    heir = await world.instance("b-2", "b")
    assert await bodies(heir) == ["m"]
    history = (await a("task_get", taskId=task))["history"]
    assert [one["state"] for one in history] == ["offered", "accepted", "pending"]


@pytest.mark.parametrize("when", WHEN)
async def test_a_reply_to_a_request_whose_sender_was_killed_is_kept(
    database_url: str, world: World, a: Caller, b: Caller, when: str
):
    """AT-7, BR-128: killed while it waits; then the reply's own process is killed too, and tries again."""
    ask: dict[str, Any] = {"call_id": "1:s", "target_agent_id": "b", "task": "?", "timeout": 60}
    await killed(database_url, "waiting", "a-1", "send_collaboration_request", **ask)
    (item,) = (await b("inbox"))["items"]
    answer = {"call_id": "1:r", "threadId": item["thread_id"], "body": "Here."}
    await killed(database_url, when, "b-1", "reply", **answer)
    await b("reply", **answer)
    again = await a("send_collaboration_request", **ask)
    assert (again["success"], again["response"]) == (True, "Here.")
    assert await bodies(b) == []
    checked = await a("check_collaboration_result", request_id=again["request_id"])
    assert (checked["status"], checked["response"]) == ("completed", "Here.")


@pytest.mark.parametrize("when", WHEN)
async def test_a_check_that_was_cut_off_gets_its_result_again(
    database_url: str, world: World, a: Caller, b: Caller, when: str
):
    """AT-6, AT-7: the call that took a result may ask for it again; nobody else gets it."""
    ask: dict[str, Any] = {"call_id": "1:s", "target_agent_id": "b", "task": "?", "timeout": 60}
    await killed(database_url, "waiting", "a-1", "send_collaboration_request", **ask)
    (item,) = (await b("inbox"))["items"]
    world.clock.advance(120)
    await b("reply", threadId=item["thread_id"], body="Late.")
    request = (await a("send_collaboration_request", **ask))["request_id"]
    check = {"call_id": "1:c", "request_id": request}
    await killed(database_url, when, "a-1", "check_collaboration_result", **check)
    assert (await a("check_collaboration_result", **check))["status"] == "completed_late"
    assert (await a("check_collaboration_result", request_id=request))["status"] == "not_found"


@pytest.mark.parametrize("when", WHEN)
async def test_a_task_is_accepted_once_whoever_is_killed(database_url: str, a: Caller, b: Caller, when: str):
    """BR-124: the call that was cut off and its repeat are one acceptance."""
    task = (await a("delegate", objective="?", toAgent="b"))["task"]["task_id"]
    move = {"call_id": "1:u", "taskId": task, "status": "accepted"}
    await killed(database_url, when, "b-1", "task_update", **move)
    assert (await b("task_update", **move))["task"]["attempt"] == 1
    history = (await a("task_get", taskId=task))["history"]
    assert [one["state"] for one in history] == ["offered", "accepted"]

"""Requests for collaboration: outcomes, chains, late results, and who may read them (AT-4, AT-5, AT-6)."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import anyio
import pytest

from orchestrator.domain.network.agents import AgentKind, LaunchSettings
from orchestrator.domain.network.collaboration import wait_s
from orchestrator.domain.network.identities import InstanceId, ThreadId
from orchestrator.ports.errors import StoreUnavailable
from orchestrator.services.response_waits import ResponseWaits
from tests.fakes.network_store import MemoryNetworkStore
from tests.support.deadline import eventually, within
from tests.support.networks import Caller, RunningClock, World
from tests.support.waiting import until

SEND, CHECK = "send_collaboration_request", "check_collaboration_result"


@pytest.fixture
def store() -> MemoryNetworkStore:
    return MemoryNetworkStore()


@pytest.fixture
def world(store: MemoryNetworkStore) -> World:
    return World(store)


async def ask_of(caller: Caller) -> dict[str, Any]:
    """The next message in an inbox, as soon as it is there."""
    items: list[dict[str, Any]] = []

    async def arrived() -> bool:
        items.extend((await caller("inbox"))["items"])
        return bool(items)

    await until(arrived)
    return items[0]


async def reply(caller: Caller, body: str = "Done.") -> dict[str, Any]:
    ask = await within(10.0, ask_of(caller))
    await caller("reply", threadId=ask["thread_id"], body=body)
    return ask


async def answered(sending: Coroutine[Any, Any, dict[str, Any]], target: Caller) -> dict[str, Any]:
    """What a request comes to that its target answers at once."""
    outcome = asyncio.ensure_future(sending)
    await reply(target)
    return await within(10.0, outcome)


@dataclass
class Requests:
    """Sends requests whose sender waits no longer, and knows them."""

    world: World
    store: MemoryNetworkStore

    def ids(self) -> list[str]:
        return self.store.request_ids("local")

    async def sent(self, a: Caller, target: str = "b", **more: Any) -> str:
        """A request whose time is not over, and whose sender was cut off."""
        before = self.ids()
        sending = asyncio.ensure_future(a(SEND, target_agent_id=target, task="?", timeout=300, **more))
        await eventually(lambda: self.ids() != before)
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        return self.ids()[-1]

    async def timed_out(self, a: Caller, target: str = "b") -> str:
        """A request whose time is over."""
        request = await self.sent(a, target)
        self.world.clock.advance(301)
        await self.world.service.heartbeat("a1")
        await self.world.service.heartbeat("b1")
        return request

    async def chain(self, *names: str) -> list[Caller]:
        """Instances, each of which was given a request of the one before and has not answered it."""
        callers = [await self.world.instance(f"{name}1", name) for name in names]
        for asking, asked in pairwise(callers):
            await self.sent(asking, asked.agent)
            assert len((await asked("inbox"))["items"]) == 1
        return callers


@pytest.fixture
def requests(world: World, store: MemoryNetworkStore) -> Requests:
    return Requests(world, store)


async def test_the_first_reply_of_the_target_is_the_response(world: World):
    """It reaches the caller as the call's result, and not once more in its inbox (BR-124)."""
    a, b = await world.instance("a1", "a"), await world.instance("b1", "b")
    outcome = asyncio.ensure_future(a(SEND, target_agent_id="B", task="Add 2 and 2.", timeout=30))
    ask = await within(10.0, ask_of(b))
    assert (ask["kind"], ask["body"], ask["from"]["agent"]) == ("ask", "Add 2 and 2.", "a")
    sent = await b("reply", threadId=ask["thread_id"], body="4")
    assert sent["recipients"] == [{"agent": "a", "instance_id": "a1", "state": "held"}]
    answer = await within(10.0, outcome)
    assert (answer["success"], answer["response"], answer["error"]) == (True, "4", None)
    assert answer["request_id"]
    assert (await a("inbox"))["items"] == []
    await b("reply", threadId=ask["thread_id"], body="And by the way...")
    assert [item["body"] for item in (await a("inbox"))["items"]] == ["And by the way..."]


async def test_who_waits_for_a_reply_is_woken_by_it(world: World):
    a, b = await world.instance("a1", "a"), await world.instance("b1", "b")
    thread = ThreadId((await a("ask", body="?", toAgent="b"))["thread_id"])
    waits = world.service.collaboration._waits  # pyright: ignore[reportPrivateUsage]
    with waits.waiting(thread, InstanceId("a1")) as arrived:
        await reply(b)
        assert arrived is not None
        assert arrived.is_set()


async def test_a_message_of_somebody_else_or_an_ask_is_no_response(world: World):
    a, b = await world.instance("a1", "a"), await world.instance("b1", "b")
    outcome = asyncio.ensure_future(a(SEND, target_agent_id="b", task="?", timeout=30))
    thread = (await within(10.0, ask_of(b)))["thread_id"]
    await b("ask", threadId=thread, body="Which one?")
    await a("reply", threadId=thread, body="That one.")
    assert not outcome.done()
    await b("reply", threadId=thread, body="Right.")
    assert (await within(10.0, outcome))["response"] == "Right."


async def test_a_timeout_of_one_second_takes_about_one_and_says_how_long_it_was(store: MemoryNetworkStore):
    world = World(store, clock=RunningClock())
    a, _ = await world.instance("a1", "a"), await world.instance("b1", "b")
    outcome = await within(10.0, a(SEND, target_agent_id="b", task="x" * 5_000, timeout=1))
    assert (outcome["success"], outcome["error"], outcome["response"]) == (False, "timeout", None)
    assert 1 <= outcome["waited_s"] < 5
    assert outcome["request_id"]
    assert "check_collaboration_result" in outcome["message"]


@pytest.mark.parametrize(
    ("chars", "timeout_s", "expected"),
    [
        (10, None, 60.0), (250, None, 90.0), (100_000, None, 120.0),
        (10, 200.0, 200.0), (10, 1.0, 1.0), (10, 100_000.0, 300.0),
    ],
)  # fmt: skip
def test_the_wait_is_what_was_asked_for_or_an_estimate(chars: int, timeout_s: float | None, expected: float):
    """A short task is waited for less long only when nobody said how long, and never under 30 s."""
    assert wait_s("x" * chars, timeout_s) == expected


async def test_a_late_response_is_fetched_once_and_by_the_requester_alone(world: World, requests: Requests):
    """BR-128: at the timeout the caller gets an id, and the result waits for it."""
    a, b = await world.instance("a1", "a"), await world.instance("b1", "b")
    c = await world.instance("c1", "c")
    request = await requests.timed_out(a)
    assert await a(CHECK, request_id=request) == {
        "status": "pending_after_timeout",
        "request_id": request,
        "response": None,
    }
    await reply(b, "Late.")
    world.clock.advance(23 * 3600)
    assert (await c(CHECK, request_id=request))["status"] == "not_found"
    first = await a(CHECK, call_id="1:c", request_id=request)
    assert (first["status"], first["response"]) == ("completed_late", "Late.")
    assert await a(CHECK, call_id="1:c", request_id=request) == first, "a repeated call repeats its answer"
    assert (await a(CHECK, request_id=request))["status"] == "not_found"
    assert (await a("inbox"))["items"] == [], "it was handed out already"


async def test_a_late_response_also_comes_to_the_inbox(world: World, requests: Requests):
    """BR-128: the requester is told without asking."""
    a, b = await world.instance("a1", "a"), await world.instance("b1", "b")
    request = await requests.timed_out(a)
    await reply(b, "Late.")
    assert [item["body"] for item in (await a("inbox"))["items"]] == ["Late."]
    assert (await a(CHECK, request_id=request))["status"] == "completed_late"


async def test_a_response_in_time_that_nobody_waited_for_is_completed(world: World, requests: Requests):
    """BR-128: the caller's connection is gone; its result is not."""
    a, b = await world.instance("a1", "a"), await world.instance("b1", "b")
    await requests.sent(a, call_id="1:s")
    await reply(b, "Here.")
    again = await within(5.0, a(SEND, call_id="1:s", target_agent_id="b", task="?", timeout=60))
    assert (again["success"], again["response"]) == (True, "Here.")
    assert (await b("inbox"))["items"] == [], "the repeated call sent nothing new"
    checked = await a(CHECK, request_id=again["request_id"])
    assert (checked["status"], checked["response"]) == ("completed", "Here.")


async def test_a_request_that_is_waited_for_is_pending(world: World, requests: Requests):
    a, _ = await world.instance("a1", "a"), await world.instance("b1", "b")
    request = await requests.sent(a)
    assert (await a(CHECK, request_id=request))["status"] == "pending"


async def test_what_is_older_than_a_day_or_unknown_is_not_found(world: World, requests: Requests):
    a, b = await world.instance("a1", "a"), await world.instance("b1", "b")
    late = await requests.timed_out(a)
    await reply(b)
    silent = await requests.timed_out(a)
    world.clock.advance(24 * 3600)
    for request in (silent, late, "nothing"):
        assert (await a(CHECK, request_id=request))["status"] == "not_found"


async def test_a_result_that_cannot_be_read_is_an_error_with_its_cause(
    world: World, store: MemoryNetworkStore
):
    a = await world.instance("a1", "a")
    store.broken = StoreUnavailable("the database did not answer in 30 s")
    checked = await a(CHECK, request_id="r")
    assert (checked["status"], checked["request_id"]) == ("error", "r")
    assert "the database did not answer in 30 s" in checked["response"]


async def test_each_cause_has_its_name_and_sends_nothing(world: World, requests: Requests):
    a = await world.instance("a1", "a")
    await world.instance("far", "elsewhere", network="other")
    await world.agent("person", kind=AgentKind.HUMAN)
    await world.agent("idle")
    for target, cause in {
        "nobody": "target_agent_not_found",
        "not a name": "target_agent_not_found",
        "elsewhere": "target_agent_not_found",
        "A": "self_request_error",
        "person": "target_is_human_error",
        "idle": "target_not_active",
    }.items():
        outcome = await a(SEND, target_agent_id=target, task="?")
        assert (outcome["success"], outcome["error"]) == (False, cause)
        assert (outcome["request_id"], outcome["waited_s"], outcome["response"]) == (None, None, None)
        assert outcome["message"]
    assert requests.ids() == []


async def test_an_agent_that_is_started_by_itself_is_active_and_gets_the_request_when_it_comes(
    world: World, requests: Requests
):
    a = await world.instance("a1", "a")
    await world.agent("sleeper", launch=LaunchSettings(autostart=True))
    outcome = asyncio.ensure_future(a(SEND, target_agent_id="sleeper", task="Wake up.", timeout=30))
    await eventually(requests.ids)
    sleeper = await world.instance("s1", "sleeper")
    await reply(sleeper, "Awake.")
    assert (await within(10.0, outcome))["response"] == "Awake."


async def test_a_request_to_whose_work_it_is_closes_a_loop(world: World, requests: Requests):
    """BR-131: A asks B, B asks A; and A asks B, B asks C, C asks A. Also with the text changed."""
    _, b, c = await requests.chain("a", "b", "c")
    for caller, target in ((b, "a"), (c, "a"), (c, "b")):
        for task in ("?", "Once more."):
            outcome = await caller(SEND, target_agent_id=target, task=task)
            assert (outcome["success"], outcome["error"]) == (False, "collaboration_loop_detected")
    await world.instance("d1", "d")
    await requests.sent(c, "d")


async def test_five_hops_pass_and_the_sixth_is_refused(world: World, requests: Requests):
    """BR-131: the sender counts."""
    *_, last = await requests.chain("a", "b", "c", "d", "e", "f")
    await world.instance("g1", "g")
    outcome = await last(SEND, target_agent_id="g", task="?")
    assert (outcome["success"], outcome["error"]) == (False, "collaboration_chain_too_long")


async def test_what_was_answered_or_is_another_instances_is_in_no_chain(world: World, requests: Requests):
    a, b = await world.instance("a1", "a"), await world.instance("b1", "b")
    await requests.timed_out(a)
    await reply(b)
    assert len((await a("inbox"))["items"]) == 1
    assert (await answered(b(SEND, target_agent_id="a", task="?", timeout=30), a))["success"]
    await requests.timed_out(a)
    await b("inbox")
    other = await world.instance("b2", "b")
    assert (await answered(other(SEND, target_agent_id="a", task="?", timeout=30), a))["success"]


async def test_tasks_and_requests_are_of_one_chain(world: World, requests: Requests):
    """BR-131: a loop can't be closed by changing the tool."""
    a, b = await world.instance("a1", "a"), await world.instance("b1", "b")
    await requests.timed_out(a)
    await b("inbox")
    with pytest.raises(Exception, match="collaboration_loop_detected"):
        await b("delegate", objective="Back to you.", toAgent="a")
    c = await world.instance("c1", "c")
    task = (await a("delegate", objective="?", toAgent="c"))["task"]["task_id"]
    await c("task_update", taskId=task, status="accepted")
    outcome = await c(SEND, target_agent_id="a", task="?")
    assert outcome["error"] == "collaboration_loop_detected"


async def test_thirty_three_requests_at_once_each_get_their_own_response(world: World):
    a, b = await world.instance("a1", "a"), await world.instance("b1", "b")
    results: dict[int, str] = {}

    async def one(number: int) -> None:
        outcome = await a(SEND, target_agent_id="b", task=f"task {number}", timeout=60)
        results[number] = outcome["response"]

    async with anyio.create_task_group() as group:
        for number in range(33):
            group.start_soon(one, number)
        with anyio.fail_after(30):
            while len(results) < 33:
                for item in (await b("inbox"))["items"]:
                    await b("reply", threadId=item["thread_id"], body=f"answer to {item['body']}")
                await asyncio.sleep(0.01)
    assert results == {number: f"answer to task {number}" for number in range(33)}


async def test_waits_are_bounded_and_a_request_that_is_not_waited_for_is_kept(world: World):
    waits = ResponseWaits(most=3, most_of_one=2)
    a, b, thread = InstanceId("a1"), InstanceId("b1"), ThreadId("t")
    with waits.waiting(thread, a) as first, waits.waiting(thread, a) as second:
        assert (first is None, second is None) == (False, False)
        with waits.waiting(thread, a) as third, waits.waiting(thread, b) as other:
            assert (third, other is not None) == (None, True)
            with waits.waiting(thread, InstanceId("c1")) as last:
                assert last is None
    with waits.waiting(thread, a) as again:
        assert again
    assert not waits.has(thread)
    world.service.collaboration._waits = ResponseWaits(most=0)  # pyright: ignore[reportPrivateUsage]
    caller, peer = await world.instance("a1", "a"), await world.instance("b1", "b")
    outcome = await within(5.0, caller(SEND, target_agent_id="b", task="?"))
    assert outcome["error"] == "timeout"
    assert "too many" in outcome["message"]
    await reply(peer, "Here.")
    assert (await caller(CHECK, request_id=outcome["request_id"]))["status"] == "completed"

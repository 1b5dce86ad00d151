"""PD-62: a human is an agent: asked, delegated to, and never out of reach or out of time."""

from __future__ import annotations

import pytest

from orchestrator.domain.network.agents import AgentDefinition, AgentKind, ManagedBy
from orchestrator.domain.network.identities import AgentName
from orchestrator.domain.network.task_states import TaskState
from orchestrator.services.network_mail import Ask
from orchestrator.services.network_members import Refused
from orchestrator.services.network_people import NetworkPeople
from orchestrator.services.network_tasks import Delegation
from tests.fakes.network_store import MemoryNetworkStore
from tests.support.networks import START, Caller, World

DAY_S = 86_400


class Peopled(World):
    """A world with a human and a worker."""

    def __init__(self) -> None:
        store = MemoryNetworkStore()
        super().__init__(store)
        self.told = 0
        self.people = NetworkPeople(store, self.service, self.clock, self.ids, self.tell)

    def tell(self) -> None:
        self.told += 1

    async def waiting(self) -> list[tuple[str, str]]:
        found = await self.people.inbox("local", "ann")
        mail = [(one.message.kind.value, one.message.body) for one in found if one.message]
        return mail + [("offer", one.task.title) for one in found if one.task]


@pytest.fixture
async def world() -> Peopled:
    world = Peopled()
    await world.service.ensure_network("local")
    await world.service.agents.add(
        "local", AgentDefinition(AgentName("ann"), START, AgentKind.HUMAN, managed_by=ManagedBy.OPERATOR)
    )
    return world


@pytest.fixture
async def bob(world: Peopled) -> Caller:
    return await world.instance("bob-1", "bob")


async def test_an_ask_stays_until_it_is_answered_however_long_that_takes(world: Peopled, bob: Caller) -> None:
    sent = await bob("ask", body="May I?", toAgent="ann")
    for _ in range(3):
        found = await world.people.inbox("local", "ann")
        await world.people.seen("local", "ann", [one.delivery.id for one in found])
        world.clock.advance(DAY_S)
    assert await world.waiting() == [("ask", "May I?")]
    await world.service.heartbeat("bob-1")
    await world.people.reply("local", "ann", sent["thread_id"], "You may.")
    assert await world.waiting() == []
    assert [(one["kind"], one["body"]) for one in (await bob("inbox"))["items"]] == [("reply", "You may.")]
    assert world.told == 1


async def test_what_needs_no_answer_is_shown_until_it_was_seen(world: Peopled, bob: Caller) -> None:
    await world.people.ask("local", "ann", Ask("When?", to_agent="bob"))
    (asked,) = (await bob("inbox"))["items"]
    await bob("reply", threadId=asked["thread_id"], body="Now.")
    assert await world.waiting() == [("reply", "Now.")]
    found = await world.people.inbox("local", "ann")
    await world.people.seen("local", "ann", [one.delivery.id for one in found])
    assert await world.waiting() == []


async def test_a_task_waits_for_a_human_and_is_taken_and_done(world: Peopled, bob: Caller) -> None:
    task = (await bob("delegate", objective="Sign it.", toAgent="ann"))["task"]
    assert task["state"] == "offered"
    world.clock.advance(DAY_S)
    await world.service.sweep()
    assert await world.waiting() == [("offer", "Sign it.")]
    await world.people.move("local", "ann", task["task_id"], TaskState.ACCEPTED, "")
    assert await world.waiting() == []
    done = await world.people.move("local", "ann", task["task_id"], TaskState.COMPLETED, "signed")
    assert (done.state, done.reason) == (TaskState.COMPLETED, "signed")
    record = await bob("task_get", taskId=task["task_id"])
    states = [one["state"] for one in record["history"]]
    assert states == ["offered", "accepted", "working", "completed"]


async def test_a_human_declines_and_is_not_asked_again(world: Peopled, bob: Caller) -> None:
    task = (await bob("delegate", objective="Sign it.", toAgent="ann"))["task"]
    await world.people.move("local", "ann", task["task_id"], TaskState.CANCELLED, "on holiday")
    await world.service.sweep()
    assert await world.waiting() == []
    now = (await bob("task_get", taskId=task["task_id"]))["task"]
    assert (now["state"], now["reason"]) == ("pending", "declined by ann: on holiday")


async def test_a_human_delegates_and_hears_how_it_ended(world: Peopled, bob: Caller) -> None:
    task = await world.people.delegate("local", "ann", Delegation("Build it.", to_agent="bob"))
    await bob("task_update", taskId=task.id, status="accepted")
    await bob("task_update", taskId=task.id, status="working")
    await bob("task_update", taskId=task.id, status="completed", reason="built")
    assert await world.waiting() == [("status", "The task is completed: built")]


async def test_nobody_speaks_for_a_worker_or_for_nobody(world: Peopled, bob: Caller) -> None:
    for name, code in (("bob", "not_a_human"), ("eve", "not_found")):
        with pytest.raises(Refused) as no:
            await world.people.reply("local", name, "t", "x")
        assert no.value.code == code

"""PD-60: an agent has one manager, and goes only when nothing is left undone without it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.domain.network.agents import AgentDefinition, AgentKind, ManagedBy
from orchestrator.domain.network.identities import AgentName
from orchestrator.services.network_members import Refused
from tests.fakes.network_store import MemoryNetworkStore
from tests.support.networks import START, World


@pytest.fixture
def world() -> World:
    return World(MemoryNetworkStore())


def operators(name: str, **profile: Any) -> AgentDefinition:
    return AgentDefinition(AgentName(name), START, managed_by=ManagedBy.OPERATOR, **profile)


async def refused(call: Any) -> str:
    with pytest.raises(Refused) as no:
        await call
    return no.value.code


async def test_an_agent_that_came_with_its_job_is_taken_over_by_who_defines_it_first(world: World) -> None:
    await world.instance("c1", "coder")
    agents = world.service.agents
    record = await agents.add("local", operators("coder", summary="Codes"))
    assert (record.definition.summary, [one.id for one in record.instances]) == ("Codes", ["c1"])
    assert await refused(agents.add("local", operators("coder"))) == "name_taken"
    by_file = replace(operators("coder"), managed_by=ManagedBy.FILE)
    assert await refused(agents.follow("local", [by_file])) == "managed_elsewhere"


async def test_what_a_file_defines_is_changed_and_removed_there_only(world: World) -> None:
    agents = world.service.agents
    await agents.follow("local", [replace(operators("a"), managed_by=ManagedBy.FILE)])
    for call in (
        agents.add("local", operators("a")),
        agents.update("local", operators("a")),
        agents.remove("local", "a", force=True),
    ):
        assert await refused(call) == "managed_elsewhere"


async def test_no_name_is_an_agent_s_and_a_group_s(world: World) -> None:
    agents = world.service.agents
    await agents.add("local", operators("a", groups=("team",)))
    assert await refused(agents.add("local", operators("team"))) == "name_taken"
    assert await refused(agents.add("local", operators("b", groups=("a",)))) == "name_taken"
    assert await refused(agents.update("local", operators("a", groups=("a",)))) == "name_taken"
    assert [one.definition.name for one in await agents.list("local")] == ["a"]


async def test_a_worker_never_becomes_a_human_nor_a_human_a_worker(world: World) -> None:
    agents = world.service.agents
    await agents.add("local", operators("a"))
    await agents.add("local", operators("ann", kind=AgentKind.HUMAN))
    assert await refused(agents.update("local", operators("a", kind=AgentKind.HUMAN))) == "kind_is_fixed"
    assert await refused(agents.update("local", operators("ann"))) == "kind_is_fixed"
    assert await refused(agents.launch_settings("local", "ann")) == "not_served_by_jobs"


async def test_an_agent_with_work_is_not_removed_unless_forced(world: World) -> None:
    agents = world.service.agents
    await agents.add("local", operators("a"))
    boss, a1 = await world.instance("b1", "boss"), await world.instance("a1", "a")
    mine = (await boss("delegate", objective="Do it.", toAgent="a"))["task"]
    await a1("task_update", taskId=mine["task_id"], status="accepted")
    await a1("claim", scope="src")
    await boss("ask", body="When?", toAgent="a")
    record = await agents.get("local", "a")
    assert record.work == "1 running instance, 1 unfinished task, 1 unread message"
    assert await refused(agents.remove("local", "a")) == "agent_has_work"

    await agents.remove("local", "a", force=True)

    assert await refused(agents.get("local", "a")) == "not_found"
    task = (await boss("task_get", taskId=mine["task_id"]))["task"]
    assert (task["state"], task["reason"]) == ("cancelled", "agent 'a' was removed")
    told = [(one["kind"], one["body"]) for one in (await boss("inbox"))["items"]]
    assert told == [
        ("status", "The task is cancelled: agent 'a' was removed"),
        ("notice", "agent 'a' was removed: it will not answer."),
    ]
    await boss("claim", scope="src")  # nobody holds it any more
    await agents.add("local", operators("a"))  # and the name is free


async def test_removing_says_what_is_not_there(world: World) -> None:
    await world.service.ensure_network("local")
    assert await refused(world.service.agents.remove("local", "a")) == "not_found"
    assert await refused(world.service.agents.list("nowhere")) == "not_found"

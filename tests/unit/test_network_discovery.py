"""Discovery: who fits, in which order, and why."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.domain.network.agents import Responsibility
from orchestrator.domain.network.capabilities import Capability
from tests.fakes.network_store import MemoryNetworkStore
from tests.support.networks import World

REPOSITORY = "https://host.org/o/r"


@pytest.fixture
async def world() -> World:
    world = World(MemoryNetworkStore())
    await world.agent("both", responsibilities=(Responsibility(REPOSITORY, ("review",)),), groups=("team",))
    await world.agent("owner", responsibilities=(Responsibility("git@host.org:o/r.git"),), groups=("team",))
    await world.agent("reviewer", responsibilities=(Responsibility(None, ("Review",)),))
    await world.agent("able", capabilities=(Capability("review", "Review"),))
    await world.agent("stranger", responsibilities=(Responsibility("billing-db", ("deploy",)),))
    return world


def ranked(found: dict[str, Any]) -> list[str]:
    return [agent["name"] for agent in found["agents"]]


async def test_a_resource_and_an_action_narrow_and_rank_with_reasons(world: World):
    caller = await world.instance("i1")
    found = await caller("discover", resourceKey="ssh://git@host.org/o/r.git", action="review")
    assert ranked(found) == ["both", "owner", "reviewer", "able"]
    assert found["agents"][0]["reasons"] == [
        "is responsible for host.org/o/r",
        "is responsible for the action 'review'",
        "is responsible for 'review' in host.org/o/r",
    ]
    assert found["resources"] == [{"resource_key": "host.org/o/r", "agents": ["both", "owner"]}]
    assert ranked(await caller("discover", resourceKey=REPOSITORY)) == ["both", "owner"]
    assert ranked(await caller("discover", action="deploy")) == ["stranger"]
    assert ranked(await caller("discover", action="paint")) == []


async def test_without_arguments_everything_is_listed(world: World):
    caller = await world.instance("i1")
    task = (await caller("delegate", objective="Look.", toAgent="owner", resource=REPOSITORY))["task"]
    found = await caller("discover")
    assert ranked(found) == ["coder", "able", "both", "owner", "reviewer", "stranger"]
    assert found["groups"] == [{"name": "team", "agents": ["both", "owner"]}]
    assert [one["resource_key"] for one in found["resources"]] == ["billing-db", "host.org/o/r"]
    assert [one["task_id"] for one in found["tasks"]] == [task["task_id"]]
    assert (await caller("discover", resourceKey="billing-db"))["tasks"] == []


async def test_available_agents_come_before_others_of_the_same_rank(world: World):
    caller = await world.instance("i1")
    await world.instance("i2", "owner")
    assert ranked(await caller("discover", resourceKey=REPOSITORY)) == ["owner", "both"]
    await world.instance("i3", "stranger")
    assert ranked(await caller("discover"))[:3] == ["coder", "owner", "stranger"]


async def test_self_declared_capabilities_are_found_and_marked_as_such(world: World):
    caller = await world.instance("i1")
    await caller("register_capabilities", capabilities=[{"name": "Paint"}])
    (found,) = (await caller("discover", action="paint"))["agents"]
    assert found["name"] == "coder"
    assert found["reasons"] == ["declares the capability 'paint' itself"]
    assert found["capabilities"] == []
    assert found["instances"][0]["self_declared_capabilities"][0]["id"] == "paint"
    await caller("register_capabilities", capabilities=[])
    assert (await caller("discover", action="paint"))["agents"] == []


async def test_discovery_shows_state_and_age_of_the_last_contact(world: World):
    """BR-133: a stale, a silent and a draining instance are seen and not available."""
    caller = await world.instance("p")
    await world.service.join("local", "owner", "q", "job-q")
    await world.instance("r", "owner")
    await world.instance("s", "owner")
    world.clock.advance(600)
    await world.service.heartbeat("p")
    await world.service.heartbeat("s")
    await world.service.drain("s")
    (owner,) = [one for one in (await caller("discover"))["agents"] if one["name"] == "owner"]
    seen = {
        one["instance_id"]: (one["state"], one["available"], one["last_seen_s_ago"])
        for one in owner["instances"]
    }
    assert seen == {
        "q": ("starting", False, None),
        "r": ("active", False, 600),
        "s": ("draining", False, 0),
    }
    assert owner["available"] is False
    await world.service.heartbeat("q")
    (owner,) = [one for one in (await caller("discover"))["agents"] if one["name"] == "owner"]
    assert owner["instances"][0]["instance_id"] == "q"
    assert owner["available"] is True

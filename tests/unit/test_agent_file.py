"""PD-60: `agents.yaml` defines agents, follows changes, and says where it is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from orchestrator.domain.network.agents import (
    AgentDefinition,
    AgentKind,
    LaunchSettings,
    ManagedBy,
    Responsibility,
    Skill,
)
from orchestrator.domain.network.capabilities import Capability
from orchestrator.domain.network.identities import AgentName
from orchestrator.ports.agent_file import AgentFileUnreadable
from orchestrator.services.agent_file import AgentFile, AgentFileError, read_agents
from tests.fakes.network_store import MemoryNetworkStore
from tests.support.networks import START, World


@dataclass
class Text:
    """A file in memory."""

    text: str | None = None
    broken: str = ""
    name: str = "/home/me/agents.yaml"

    async def read(self) -> str | None:
        if self.broken:
            raise AgentFileUnreadable(self.broken)
        return self.text


WHOLE = """
networks:
  local:
    agents:
      Reviewer:
        summary: Reviews Python
        description: Reads every line
        url: https://example.com
        payment_address: "0xabc"
        capabilities: [Code Review, {id: sec, name: Security, description: finds holes}]
        skills: [python, {name: reading, description: fast}]
        tags: [python]
        examples: [Review my change]
        version: "1.2"
        groups: [Reviewers]
        responsibilities:
          - {resource_key: "git@example.com:a/b.git", actions: [review]}
        launch: {image: "box:1", model: "scripted:turns.yaml", mission: Be kind, autostart: true}
      bare:
  other:
    agents: {ann: {kind: human}}
"""


@pytest.fixture
def world() -> World:
    return World(MemoryNetworkStore())


async def agents(world: World, network: str = "local") -> dict[str, AgentDefinition]:
    records = await world.service.agents.list(network)
    return {one.definition.name: one.definition for one in records}


async def test_every_field_of_the_profile_arrives(world: World) -> None:
    text = Text(WHOLE)
    await AgentFile(world.service.agents, text, world.clock).reload()
    found = await agents(world)
    assert found["reviewer"] == AgentDefinition(
        AgentName("reviewer"),
        START,
        AgentKind.WORKER,
        "Reviews Python",
        "Reads every line",
        "https://example.com",
        "0xabc",
        (Capability("code-review", "Code Review"), Capability("sec", "Security", "finds holes")),
        (Skill("python"), Skill("reading", "fast")),
        ("python",),
        ("Review my change",),
        "1.2",
        ("reviewers",),
        (Responsibility("example.com/a/b", ("review",)),),
        LaunchSettings("box:1", "scripted:/home/me/turns.yaml", "Be kind", autostart=True),
        ManagedBy.FILE,
    )
    assert found["bare"].launch == LaunchSettings()
    assert (await agents(world, "other"))["ann"].kind is AgentKind.HUMAN


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("networks: [", "line 1: not valid YAML"),
        ("- a", "line 1: the document: Input should be"),
        ("agents: {}", "line 1: agents: unknown key"),
        (
            "networks:\n  local:\n    agents:\n      a:\n        launch: {model: gpt}",
            "unknown model 'gpt': write openai:MODEL",
        ),
        (
            "networks:\n  local:\n    agents:\n      a:\n        sumary: x",
            "line 5: networks.local.agents.a.sumary",
        ),
        ("networks:\n  local:\n    agents:\n      a:\n        sumary: x", "did you mean 'summary'?"),
        ("networks:\n  local:\n    agents:\n      a: {}\n      a: {}", "line 5: a: repeated key"),
        ("networks:\n  local:\n    agents:\n      a: {}\n      A: {}", "line 5: A: agent 'a' is there twice"),
        ("networks:\n  local:\n    agents:\n      'a b': {}", "line 4: 'a b' can't be a name: use"),
        (
            "networks:\n  local:\n    agents:\n      a:\n        groups: ['ü']",
            "line 5: networks.local.agents.a.groups",
        ),
        ("networks:\n  local:\n    agents:\n      a: {launch: {autostart: maybe}}", "line 4: "),
        (
            "networks:\n  local:\n    agents:\n      a: {kind: human, launch: {autostart: true}}",
            "a human is not started by Portside",
        ),
        ("networks: {local: {agents: {a: {payment_address: 0xabc}}}}", "unless it is put in quotes"),
        ("networks:\n  local:\n    agents:\n      a: {responsibilities: [{resource_key: ./x}]}", "line 4: "),
        (
            "networks:\n  local:\n    agents:\n      a: {capabilities: [x, X]}",
            "two capabilities have the id 'x'",
        ),
    ],
)
async def test_a_fault_is_named_with_its_line_and_changes_nothing(world: World, text: str, said: str) -> None:
    with pytest.raises(AgentFileError) as fault:
        read_agents(text, source="agents.yaml")
    assert str(fault.value).startswith("agents.yaml line ")
    assert said in str(fault.value)
    file = Text(WHOLE)
    follower = AgentFile(world.service.agents, file, world.clock)
    await follower.reload()
    before = await agents(world)
    file.text = text
    await follower.reload()
    assert said in follower.state.problem
    assert await agents(world) == before
    file.text = WHOLE
    await follower.reload()
    assert follower.state.problem == ""


async def test_a_file_that_can_t_be_read_changes_nothing(world: World) -> None:
    file = Text(WHOLE)
    follower = AgentFile(world.service.agents, file, world.clock)
    await follower.reload()
    file.broken = "permission denied"
    await follower.reload()
    assert "can't be read: permission denied" in follower.state.problem
    assert set(await agents(world)) == {"reviewer", "bare"}


async def test_an_agent_that_leaves_the_file_leaves_the_network_and_one_that_changes_changes(
    world: World,
) -> None:
    file = Text("networks: {local: {agents: {a: {}, b: {summary: old}}}}")
    follower = AgentFile(world.service.agents, file, world.clock)
    await follower.reload()
    world.clock.advance(60)
    file.text = "networks: {local: {agents: {b: {summary: new}}}}"
    await follower.reload()
    found = await agents(world)
    assert {name: (one.summary, one.created_at) for name, one in found.items()} == {"b": ("new", START)}
    file.text = None
    await follower.reload()
    assert await agents(world) == {}


async def test_an_agent_that_leaves_the_file_stays_until_its_work_is_done(world: World) -> None:
    file = Text("networks: {local: {agents: {a: {launch: {autostart: true}}}}}")
    follower = AgentFile(world.service.agents, file, world.clock)
    await follower.reload()
    boss = await world.instance("b1", "boss")
    task: dict[str, Any] = (await boss("delegate", objective="Do it.", toAgent="a"))["task"]
    file.text = ""
    await follower.reload()
    assert follower.state.staying == (
        "'a' is not in the file any more and stays until its work is done: 1 unfinished task",
    )
    assert not (await agents(world))["a"].launch.autostart
    await boss("task_update", taskId=task["task_id"], status="cancelled")
    await follower.reload()
    assert (follower.state.staying, set(await agents(world))) == ((), {"boss"})


async def test_the_file_takes_no_agent_away_from_an_operator(world: World) -> None:
    operators = AgentDefinition(AgentName("a"), START, summary="mine", managed_by=ManagedBy.OPERATOR)
    await world.service.agents.add("local", operators)
    file = Text("networks: {local: {agents: {a: {summary: theirs}, b: {}}}}")
    follower = AgentFile(world.service.agents, file, world.clock)
    await follower.reload()
    assert "remove it there first" in follower.state.problem
    assert {name: one.summary for name, one in (await agents(world)).items()} == {"a": "mine"}
    await world.service.agents.remove("local", "a")
    await follower.reload()
    assert (follower.state.problem, set(await agents(world))) == ("", {"a", "b"})

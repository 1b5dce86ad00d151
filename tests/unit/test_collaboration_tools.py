"""The agent toolbox as protocol: names, arguments, bounds, detail levels, results (AT-1)."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError, validate

from orchestrator.domain.network.agents import Responsibility, Skill
from orchestrator.domain.network.capabilities import Capability
from orchestrator.domain.network.refusals import MEANINGS
from tests.fakes.network_store import MemoryNetworkStore
from tests.support.networks import World
from tests.support.spied import Spied
from tool_registry.context import ToolContext
from tool_registry.tool import ToolSource

SPEC = {
    "search_for_agents": "query* top_k strictness output_detail include_tags",
    "send_collaboration_request": "target_agent_id* task* timeout",
    "check_collaboration_result": "request_id*",
}
MINIMAL = {"agent_id", "similarity_score", "name", "url", "payment_address"}
SUMMARY = MINIMAL | {"summary", "tags"}
CAPABILITIES = SUMMARY | {"capabilities", "skills"}
FULL = CAPABILITIES | {
    "description", "examples", "version", "kind", "groups", "responsibilities", "self_declared_capabilities",
}  # fmt: skip


@pytest.fixture
def world() -> World:
    return World(MemoryNetworkStore())


def test_there_are_exactly_the_three_tools_with_exactly_their_arguments(world: World):
    found = {
        name: " ".join(
            key + "*" * (key in tool.definition.parameters["required"])
            for key in tool.definition.parameters["properties"]
        )
        for name, tool in world.toolbox.items()
    }
    assert found == SPEC


def test_schemas_are_closed_and_defaults_and_bounds_are_those_of_the_specification(world: World):
    for tool in world.toolbox.values():
        parameters = tool.definition.parameters
        Draft202012Validator.check_schema(parameters)
        assert parameters["additionalProperties"] is False
        assert all("type" in one and "description" in one for one in parameters["properties"].values())
    search = world.toolbox["search_for_agents"].definition.parameters["properties"]
    assert (search["top_k"]["minimum"], search["top_k"]["maximum"], search["top_k"]["default"]) == (1, 20, 5)
    strictness = search["strictness"]
    assert (strictness["minimum"], strictness["maximum"], strictness["default"]) == (0, 1, 0.2)
    assert search["output_detail"]["enum"] == ["minimal", "summary", "capabilities", "full"]
    assert search["output_detail"]["default"] == "summary"
    timeout = world.toolbox["send_collaboration_request"].definition.parameters["properties"]["timeout"]
    assert timeout["default"] == 120
    validate(
        {"target_agent_id": "a", "task": "?", "timeout": 900},
        world.toolbox["send_collaboration_request"].definition.parameters,
    )


def test_promised_results_are_valid_and_closed_and_every_code_has_a_meaning(world: World):
    for tool in world.toolbox.values():
        Draft202012Validator.check_schema(tool.output_schema)
        assert tool.output_schema["additionalProperties"] is False
        assert set(tool.output_schema["required"]) == set(tool.output_schema["properties"])
        assert set(tool.refusals) <= set(MEANINGS)
    found = world.toolbox["search_for_agents"].output_schema
    assert found["title"] == "AgentSearchOutput"
    items = found["properties"]["results"]["items"]
    assert items["title"] == "AgentSearchResultItem"
    assert [set(level["required"]) for level in items["anyOf"]] == [MINIMAL, SUMMARY, CAPABILITIES, FULL]
    with pytest.raises(ValidationError):
        validate({"message": "", "results": [{"agent_id": "a"}]}, found)


def test_traits_leave_a_send_time_to_wait(world: World):
    read_only = {name for name, tool in world.toolbox.items() if tool.traits.read_only}
    assert read_only == {"search_for_agents"}
    for tool in world.toolbox.values():
        assert (tool.traits.source, tool.traits.owner) == (ToolSource.NETWORK, "network")
        assert (tool.traits.surface, tool.traits.idempotent, tool.traits.destructive) == (
            "worker", True, False,
        )  # fmt: skip
    assert world.toolbox["send_collaboration_request"].traits.timeout_s > 300


@pytest.mark.parametrize(
    ("detail", "fields"),
    [
        ({"output_detail": "minimal"}, MINIMAL),
        ({}, SUMMARY),
        ({"output_detail": "capabilities"}, CAPABILITIES),
        ({"output_detail": "full"}, FULL),
    ],
)
async def test_each_level_of_detail_has_its_fields(world: World, detail: dict[str, str], fields: set[str]):
    await world.agent(
        "painter",
        summary="Paints walls.",
        description="Also ceilings.",
        url="https://h/p",
        payment_address="0x1",
        capabilities=(Capability("paint", "Paint", "Walls."),),
        tags=("home",),
        skills=(Skill("Brush", "Any."),),
        examples=("Paint my kitchen",),
        version="2",
        groups=("crafts",),
        responsibilities=(Responsibility("h.org/o/r", ("review",)),),
    )
    painter = await world.instance("p1", "painter")
    await painter("register_capabilities", capabilities=[{"name": "Paint doors"}])
    a = await world.instance("a1", "a")
    found = await a("search_for_agents", query="paint walls", **detail)
    assert set(found) == {"message", "results"}
    (item,) = found["results"]
    assert set(item) == fields
    expected = {
        "agent_id": "painter", "name": "painter", "url": "https://h/p", "payment_address": "0x1",
        "summary": "Paints walls.", "tags": ["home"], "description": "Also ceilings.", "version": "2",
        "capabilities": [{"id": "paint", "name": "Paint", "description": "Walls."}],
        "examples": ["Paint my kitchen"], "groups": ["crafts"], "kind": "worker",
        "responsibilities": [{"resource_key": "h.org/o/r", "actions": ["review"]}], "skills": [{"name": "Brush", "description": "Any."}],
        "self_declared_capabilities": [{"id": "paint-doors", "name": "Paint doors", "description": ""}],
    }  # fmt: skip
    assert {key: value for key, value in item.items() if key != "similarity_score"} == {
        key: value for key, value in expected.items() if key in fields
    }


async def test_every_argument_in_the_schema_is_read(world: World):
    """An argument that is advertised and not read could never work."""
    await world.instance("i1")
    given: dict[str, Any] = {
        "query": "?", "top_k": 1, "strictness": 0.5, "output_detail": "full", "include_tags": ["x"],
        "target_agent_id": "nobody", "task": "?", "timeout": 1, "request_id": "?",
    }  # fmt: skip
    for tool in world.toolbox.values():
        wanted = set(tool.definition.parameters["properties"])
        arguments = Spied({key: value for key, value in given.items() if key in wanted})
        context = ToolContext(job_id="j", call_id="c", agent="coder", instance_id="i1", network="local")
        assert not (await tool.execute(arguments, context)).is_error
        assert arguments.read == wanted

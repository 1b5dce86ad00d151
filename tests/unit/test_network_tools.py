"""The twelve tools as protocol: names, arguments, texts, and that each argument is read (WN-1, WN-2, WN-6, WN-7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator

from orchestrator.domain.network.refusals import MEANINGS, RefusalCode
from orchestrator.services.network_members import Refused
from tests.fakes.network_store import MemoryNetworkStore
from tests.support.network_page import PAGE, render
from tests.support.networks import Caller, Refusal, World
from tests.support.spied import Spied
from tool_registry.context import ToolContext
from tool_registry.tool import ToolSource

# Worker-network-tools, "The tool set": `*` is required. The two rows that mark none are about pairs that say
# nothing apart: a reply needs its thread and body, an update its task and status, a declaration its list.
SPEC = {
    "network_whoami": "",
    "network_discover": "resourceKey action",
    "network_ask": "body* toAgent toInstance threadId subject taskId resource",
    "network_delegate": "objective* title acceptanceCriteria toAgent toInstance resource",
    "network_inbox": "",
    "network_reply": "threadId* body*",
    "network_task_get": "taskId*",
    "network_task_update": "taskId* status* reason",
    "network_claim": "scope* scopeType resourceId taskId ttlSeconds",
    "network_release": "claimId*",
    "network_publish_artifact": "uri* label type taskId",
    "network_register_capabilities": "capabilities*",
}


@pytest.fixture
def world() -> World:
    return World(MemoryNetworkStore())


def schemas(world: World) -> dict[str, dict[str, Any]]:
    return {name: tool.definition.parameters for name, tool in world.tools.items()}


def test_there_are_exactly_the_twelve_tools_with_exactly_their_arguments(world: World):
    found = {
        name: " ".join(key + "*" * (key in schema["required"]) for key in schema["properties"])
        for name, schema in schemas(world).items()
    }
    assert found == SPEC


def test_every_schema_is_valid_and_closed(world: World):
    for schema in schemas(world).values():
        Draft202012Validator.check_schema(schema)
        for node in objects(schema):
            assert node["additionalProperties"] is False
            assert all("type" in child and "description" in child for child in node["properties"].values())


def test_every_promised_result_is_a_valid_closed_schema_and_every_code_has_a_meaning(world: World):
    """Callers of the other tests hold each answer to what is promised here."""
    for tool in world.tools.values():
        Draft202012Validator.check_schema(tool.output_schema)
        assert tool.output_schema["type"] == "object"
        assert tool.output_schema["additionalProperties"] is False
        assert set(tool.output_schema["required"]) == set(tool.output_schema["properties"])
        assert set(tool.refusals) <= set(MEANINGS)
    assert set(MEANINGS) == set(get_args(RefusalCode))


def test_the_page_of_the_tools_shows_them_as_they_are():
    assert PAGE.read_text() == render(), "run: python -m tests.support.network_page"


def objects(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if schema["type"] == "object":
        yield schema
        for child in schema["properties"].values():
            yield from objects(child)
    if schema["type"] == "array":
        yield from objects(schema["items"])


def test_defaults_and_bounds_are_those_of_the_specification(world: World):
    found = schemas(world)
    claim = found["network_claim"]["properties"]
    assert claim["scopeType"]["enum"] == ["path", "task", "resource"]
    assert claim["scopeType"]["default"] == "path"
    ttl = claim["ttlSeconds"]
    assert (ttl["default"], ttl["minimum"], ttl["maximum"]) == (3600, 1, 86400)
    update = found["network_task_update"]["properties"]["status"]
    assert update["enum"] == ["accepted", "working", "blocked", "completed", "failed", "cancelled"]
    artifact = found["network_publish_artifact"]["properties"]["type"]
    assert artifact["default"] == "other"
    assert "enum" not in artifact, "other values are accepted and kept"
    capabilities = found["network_register_capabilities"]["properties"]["capabilities"]
    item = capabilities["items"]
    assert capabilities["maxItems"] == 20
    assert {name: value["maxLength"] for name, value in item["properties"].items()} == {
        "id": 64,
        "name": 64,
        "description": 500,
    }
    assert item["required"] == ["name"]


def test_descriptions_tell_of_peers_and_that_replies_are_tool_calls(world: World):
    texts = {name: tool.definition.description for name, tool in world.tools.items()}
    for name in ("network_ask", "network_inbox", "network_reply", "network_delegate", "network_task_update"):
        assert "persistent peer" in texts[name], name
        assert "replies are tool calls, not output" in texts[name].lower(), name
    assert (
        "Never work an overlapping scope while another agent holds a claim on it." in texts["network_claim"]
    )
    assert "A claim is coordination, not permission." in texts["network_claim"]


def test_what_an_agent_waits_with_awaits_others(world: World):
    """BR-143: for a message, a result, an agent that is free, or the end of another's claim."""
    tools = {**world.tools, **world.toolbox}
    assert {name for name, tool in tools.items() if tool.traits.awaits_others} == {
        "network_inbox",
        "network_task_get",
        "network_discover",
        "network_claim",
        "search_for_agents",
        "check_collaboration_result",
    }


def test_traits_are_the_networks(world: World):
    read_only = {name for name, tool in world.tools.items() if tool.traits.read_only}
    assert read_only == {"network_whoami", "network_discover", "network_task_get"}
    for tool in world.tools.values():
        assert (tool.traits.source, tool.traits.owner) == (ToolSource.NETWORK, "network")
        assert tool.traits.surface == "worker"
        assert tool.traits.idempotent
        assert not tool.traits.destructive


@pytest.mark.parametrize("name", sorted(SPEC))
async def test_every_argument_in_the_schema_is_read(world: World, name: str):
    """An argument that is advertised under another name than the handler reads could never work."""
    await world.instance("i1")
    arguments: dict[str, Any] = {
        "body": "?", "objective": "?", "threadId": "?", "taskId": "?", "status": "working", "scope": "a",
        "claimId": "?", "uri": "?", "capabilities": [Spied({"name": "x"})], "resourceId": "r",
        "resource": "r",
    }  # fmt: skip
    schema = world.tools[name].definition.parameters
    given = Spied({key: value for key, value in arguments.items() if key in schema["properties"]})
    context = ToolContext(job_id="j", call_id="c", agent="coder", instance_id="i1", network="local")
    await world.tools[name].execute(given, context)
    assert given.read == set(schema["properties"])
    for item in given.get("capabilities") or ():
        assert item.read == {"id", "name", "description"}


async def test_who_acts_is_the_token_and_nothing_else(world: World):
    """BR-135: an instance can't act under another agent's name."""
    await world.instance("i1", "coder")
    await world.instance("i2", "blue")
    forged = Caller(world.tools, "local", "blue", "i1")
    for call in (forged("whoami"), forged("claim", scope="src"), forged("ask", body="?", toAgent="coder")):
        with pytest.raises(Refusal) as no:
            await call
        assert no.value.code == "not_a_member"


async def test_whoami_tells_definition_instance_and_network(world: World):
    await world.agent("reviewer", groups=("quality",), summary="Reads diffs.")
    caller = await world.instance("i1", "reviewer")
    await caller("register_capabilities", capabilities=[{"name": "Rust", "description": "Also unsafe."}])
    me = await caller("whoami")
    assert me["network"] == "local"
    assert me["definition"]["name"] == "reviewer"
    assert me["definition"]["groups"] == ["quality"]
    assert me["definition"]["capabilities"] == []
    assert me["instance"] == {
        "instance_id": "i1",
        "job_id": "job-of-i1",
        "state": "active",
        "self_declared_capabilities": [{"id": "rust", "name": "Rust", "description": "Also unsafe."}],
    }


async def test_an_artifact_is_published_once_for_each_call(world: World):
    a, b = await world.instance("i1"), await world.instance("i2", "reviewer")
    task = (await a("delegate", objective="Build it.", toAgent="reviewer"))["task"]["task_id"]
    first = await b("publish_artifact", call_id="x", uri="https://h/1", type="wheel", label="It", taskId=task)
    again = await b("publish_artifact", call_id="x", uri="https://h/1", type="wheel", label="It", taskId=task)
    assert first == again
    assert first["reference"] == f"artifact:{first['artifact_id']}"
    assert (await a("task_get", taskId=task))["artifacts"] == [first]
    assert (await b("publish_artifact", uri="https://h/2"))["type"] == "other"
    with pytest.raises(Refusal) as no:
        await b("publish_artifact", uri="a\nb")
    assert no.value.code == "invalid_uri"


async def test_another_networks_things_do_not_exist(world: World):
    """Another network's agents, instances, tasks, threads and claims are not found, never forbidden."""
    there = await world.instance("far-1", "painter", network="other")
    peer = await world.instance("far-2", "writer", network="other")
    task = (await there("delegate", objective="Paint.", toAgent="writer"))["task"]["task_id"]
    thread = (await there("ask", body="?", toAgent="writer"))["thread_id"]
    claim = (await there("claim", scope="src"))["claim_id"]
    here = await world.instance("near-1")
    unknown = [
        here("ask", body="?", toAgent="painter"),
        here("ask", body="?", toInstance="far-1"),
        here("ask", body="?", threadId=thread),
        here("ask", body="?", toAgent="coder", taskId=task),
        here("delegate", objective="?", toAgent="writer"),
        here("delegate", objective="?", toInstance="far-2"),
        here("reply", threadId=thread, body="?"),
        here("task_get", taskId=task),
        here("task_update", taskId=task, status="accepted"),
        here("claim", scope="lib", taskId=task),
        here("release", claimId=claim),
        here("publish_artifact", uri="https://h/1", taskId=task),
    ]
    for call in unknown:
        with pytest.raises(Refusal) as no:
            await call
        assert no.value.code == "not_found"
    await here("claim", scope="src")
    found = await here("discover")
    assert [agent["name"] for agent in found["agents"]] == ["coder"]
    assert found["tasks"] == []
    assert len((await peer("inbox"))["items"]) == 2


async def test_a_token_for_the_wrong_network_is_no_member(world: World):
    await world.instance("i1")
    await world.service.ensure_network("other")
    with pytest.raises(Refusal) as no:
        await Caller(world.tools, "other", "coder", "i1")("whoami")
    assert no.value.code == "not_a_member"


async def test_one_agent_owns_a_name(world: World):
    """BR-135: the second registration of a name is refused, however it is spelled."""
    await world.agent("Blue")
    for name in ("Blue", "BLUE", "\uff22lue"):
        with pytest.raises(Refused) as no:
            await world.agent(name)
        assert no.value.code == "name_taken"
    await world.agent("red", groups=("team",))
    with pytest.raises(Refused, match="'team' is a group's name"):
        await world.agent("Team")
    with pytest.raises(Refused, match="'blue' is an agent's name"):
        await world.agent("green", groups=("Blue",))
    assert (await world.service.ensure_agent("local", "BLUE")).name == "blue"

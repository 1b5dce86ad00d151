"""Which tools there are, and what every change does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.registry_tools import RegistryTool
from tool_registry.catalogue import build_catalogue
from tool_registry.errors import InvalidSchema, RegistrationError
from tool_registry.registry import Offer, ToolRegistry
from tool_registry.tool import ToolSource
from tool_registry.visibility import ToolState


def offers(*names: str, owner: str = "server", **more: Any) -> list[Offer]:
    return [Offer(RegistryTool(name, owner=owner, **more)) for name in names]


def names(registry: ToolRegistry) -> list[str]:
    return [entry.name for entry in registry.entries()]


def state(registry: ToolRegistry, name: str) -> ToolState:
    entry = registry.get(name)
    assert entry is not None
    return entry.state


def test_a_registered_tool_is_found_as_it_was_given() -> None:
    registry = ToolRegistry()
    tool = RegistryTool("find", description="ő", schema='{"b":1.0,"a":{"é":1e5},"type":"object"}')
    entry = registry.register(tool)
    assert registry.get("find") is entry
    assert entry.definition == tool.definition
    assert entry.tool is tool
    assert (entry.state, entry.renamed) == (ToolState.ACTIVE, False)


def test_replacing_swaps_an_owners_whole_set_and_leaves_the_others() -> None:
    registry = ToolRegistry()
    registry.replace("other", offers("x", owner="other"))
    registry.replace("server", offers("a", "b"))
    replaced = registry.replace("server", offers("b", "c"))
    assert (replaced.registered, replaced.removed, replaced.refused) == (("b", "c"), ("a",), ())
    assert names(registry) == ["b", "c", "x"]


def test_removing_an_owner_removes_its_tools_and_instructions() -> None:
    registry = ToolRegistry()
    registry.replace("server", offers("a", "b"), instructions="use a, then b")
    assert registry.remove_owner("server") == ("a", "b")
    assert registry.entries() == ()
    assert registry.instructions() == {}


def test_subscribers_see_whole_states_only() -> None:
    registry = ToolRegistry()
    registry.replace("server", offers("a", "b"))
    seen: list[list[str]] = []
    end = registry.subscribe(lambda: seen.append(names(registry)))
    registry.replace("server", offers("c", "d"))
    registry.register(RegistryTool("e", owner="other"))
    registry.set_enabled("e", enabled=False)
    registry.remove_owner("other")
    end()
    end()
    registry.remove_owner("server")
    assert seen == [["c", "d"], ["c", "d", "e"], ["c", "d", "e"], ["c", "d"]]


def test_every_change_raises_the_revision_and_a_refusal_does_not() -> None:
    registry = ToolRegistry()
    revisions = [registry.revision]
    registry.register(RegistryTool("a"))
    revisions.append(registry.revision)
    registry.replace("server", offers("b"))
    revisions.append(registry.revision)
    with pytest.raises(RegistrationError):
        registry.register(RegistryTool("shell", source=ToolSource.WASM, owner="evil"))
    assert registry.set_enabled("nothing", enabled=False) is False
    assert revisions == sorted(set(revisions))
    assert registry.revision == revisions[-1]


BAD_SCHEMAS = {
    "no json": '{"type":',
    "no object": "[]",
    "another root": '{"type":"string"}',
    "a strange draft": '{"$schema":"https://example.com/mine"}',
    "a draft that is a list": '{"$schema":[]}',
    "a draft that is a number": '{"$schema":5}',
    "draft-03": '{"$schema":"http://json-schema.org/draft-03/schema#","required":true}',
    "a bad keyword": '{"properties":{"a":{"type":"strin"}}}',
    "a bad pattern": '{"properties":{"a":{"pattern":"("}}}',
    "a dangling reference": '{"properties":{"a":{"$ref":"#/$defs/none"}}}',
    "half a pair": '{"title":"\\ud800"}',
    "NaN": '{"properties":{"a":{"maximum":NaN}}}',
    "a doubled key": '{"type":"object","type":"object"}',
}


@pytest.mark.parametrize("text", BAD_SCHEMAS.values(), ids=BAD_SCHEMAS.keys())
def test_a_bad_schema_takes_its_own_tool_out_and_its_neighbours_stay(text: str) -> None:
    registry = ToolRegistry()
    replaced = registry.replace(
        "server", [*offers("first"), Offer(RegistryTool("bad", schema=text)), *offers("last")]
    )
    assert replaced.registered == ("first", "last")
    (refused,) = replaced.refused
    assert isinstance(refused.error, InvalidSchema)
    assert refused.proposed == "bad"
    assert refused.error.message.startswith("server, tool 'bad': ")
    assert names(registry) == ["first", "last"]


def test_a_description_that_can_not_be_sent_takes_its_own_tool_out() -> None:
    registry = ToolRegistry()
    bad = Offer(RegistryTool("bad", description="half a pair: \ud800"))
    replaced = registry.replace("server", [bad, *offers("fine")], instructions="also \ud800 half")
    assert replaced.registered == ("fine",)
    build_catalogue(registry).as_json_text().encode()


@pytest.mark.parametrize(
    "text", ["", "null", '""', "{}", '{"type":"object"}', '{"type":"object","properties":{}}']
)
def test_a_wasm_tool_that_says_nothing_needs_a_schema(text: str) -> None:
    entry = ToolRegistry().register(RegistryTool(schema=text, source=ToolSource.WASM))
    assert (entry.state, entry.schema) == (ToolState.NEEDS_SCHEMA, None)
    assert "override" in entry.reason


@pytest.mark.parametrize("text", ["{}", '{"type":"object"}'])
def test_an_mcp_tool_without_parameters_is_a_tool(text: str) -> None:
    """BR-057."""
    assert ToolRegistry().register(RegistryTool(schema=text)).state is ToolState.ACTIVE


def test_a_tool_that_failed_to_load_is_registered_with_its_reason() -> None:
    entry = ToolRegistry().register(
        RegistryTool(schema="{broken"), state=ToolState.FAILED_TO_LOAD, reason="no component"
    )
    assert (entry.state, entry.reason) == (ToolState.FAILED_TO_LOAD, "no component")


def test_a_rival_renames_a_tool_and_its_going_gives_the_name_back() -> None:
    """BR-059."""
    registry = ToolRegistry()
    registry.replace("mail_a", offers("send", owner="mail_a"))
    registry.replace("mail_b", offers("send", owner="mail_b"))
    assert registry.get("send") is None
    assert {entry.traits.owner for entry in registry.entries() if entry.renamed} == {"mail_a", "mail_b"}
    registry.remove_owner("mail_b")
    entry = registry.get("send")
    assert entry is not None
    assert (entry.traits.owner, entry.renamed) == ("mail_a", False)


def test_a_disabled_tool_stays_disabled_while_its_owner_comes_and_goes() -> None:
    registry = ToolRegistry()
    registry.replace("server", offers("a", "b"))
    assert registry.set_enabled("a", enabled=False)
    registry.remove_owner("server")
    registry.replace("server", offers("a", "b"))
    assert (state(registry, "a"), state(registry, "b")) == (ToolState.DISABLED, ToolState.ACTIVE)
    assert registry.set_enabled("a", enabled=True)
    assert state(registry, "a") is ToolState.ACTIVE


def test_a_disabled_tool_stays_disabled_under_another_name() -> None:
    """A rival that renames it does not enable it, and does not inherit what was decided about it."""
    registry = ToolRegistry()
    registry.replace("mail_a", offers("send", owner="mail_a"))
    registry.set_enabled("send", enabled=False)
    registry.replace("mail_b", offers("send", owner="mail_b"))
    states = {entry.traits.owner: entry.state for entry in registry.entries()}
    assert states == {"mail_a": ToolState.DISABLED, "mail_b": ToolState.ACTIVE}
    registry.remove_owner("mail_a")
    assert state(registry, "send") is ToolState.ACTIVE


def test_an_offer_of_another_owner_is_a_fault_of_the_caller() -> None:
    with pytest.raises(ValueError, match="another owner"):
        ToolRegistry().replace("server", offers("a", owner="other"))


def test_instructions_are_bounded() -> None:
    registry = ToolRegistry()
    registry.replace("server", offers("a"), instructions="x" * 100_000)
    assert len(registry.instructions()["server"]) == 8_192


def test_a_reload_compiles_only_what_is_new() -> None:
    registry = ToolRegistry()
    other = '{"type":"object","properties":{"q":{"type":"string"}}}'
    registry.replace("server", [*offers("a"), *offers("b", schema='{"type":"object","properties":{}}')])
    first = registry.get("a")
    registry.replace("server", [*offers("a"), *offers("b", schema=other)])
    a, b = registry.get("a"), registry.get("b")
    assert first is not None
    assert a is not None
    assert b is not None
    assert a.schema is first.schema
    assert b.schema is not None
    assert (b.schema.text, b.schema.accepts({"q": 1})) == (other, False)


def test_a_thousand_tools_are_replaced_in_good_time() -> None:
    registry = ToolRegistry()
    schema = json.dumps({"type": "object", "properties": {"q": {"type": "string"}}})
    many = offers(*(f"tool_{n}" for n in range(1_000)), schema=schema, source=ToolSource.PROXY)
    assert len(registry.replace("server", many).registered) == 1_000

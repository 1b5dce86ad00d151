"""How a listed tool becomes a tool of the registry."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tool_registry.mcp.config import parse_server
from tool_registry.mcp.connection import ServerConnection
from tool_registry.mcp.listing import NotATool, parse_tool
from tool_registry.mcp.log import ServerLog
from tool_registry.mcp.tool import McpTool
from tool_registry.mcp.transport import Transport
from tool_registry.registry import Offer, ToolRegistry
from tool_registry.tool import Approval, ToolSource

TREE = {
    "type": "object",
    "properties": {
        "root": {"$ref": "#/$defs/Node"},
        "since": {"type": "string", "format": "date-time"},
        "until": {"$ref": "#/properties/since", "description": "end"},
    },
    "required": ["root"],
    "additionalProperties": False,
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
            },
            "required": ["name"],
        }
    },
}


async def _nowhere() -> Transport:
    raise AssertionError("nothing is called here")


def _tool(server: str, entry: dict[str, Any], **config: Any) -> McpTool:
    connection = ServerConnection(
        server, _nowhere, start_timeout_s=1, log=ServerLog(server), on_listing=lambda _listing, _text: None
    )
    parsed = parse_server({"command": "x", **config}, name=server)
    return McpTool(server, parse_tool({"inputSchema": {}, **entry}), parsed, connection)


def _approval(annotations: dict[str, Any], **config: Any) -> Approval:
    return _tool("s", {"name": "t", "annotations": annotations}, **config).traits.approval


async def test_the_name_is_proposed_with_the_servers_and_the_own_name_kept():
    """BR-058: calls use the original name; the registry decides the shown one."""
    tool = _tool("team docs.v2", {"name": "admin.users/list"})
    assert tool.definition.name == "team docs.v2_admin.users/list"
    assert tool.traits.original_name == "admin.users/list"
    assert tool.traits.owner == "mcp:team docs.v2"
    assert tool.traits.source is ToolSource.MCP


async def test_odd_names_stay_apart_in_the_registry():
    """BR-058: legal, different and stable, whatever the order."""
    names = [
        "admin.users/list",
        "admin_users_list",
        "admin.users_list",
        "x" * 69 + "1",
        "x" * 69 + "2",
        "résumé",
    ]

    def shown(order: list[str]) -> dict[str, str]:
        registry = ToolRegistry()
        registry.replace("mcp:team docs.v2", [Offer(_tool("team docs.v2", {"name": name})) for name in order])
        return {entry.traits.original_name: entry.name for entry in registry.entries()}

    first = shown(names)
    assert len(set(first.values())) == len(names)
    assert first == shown(names[::-1])


async def test_two_servers_tools_and_the_built_ins_do_not_meet():
    """BR-059: `send` of two servers, and a server that calls its tool `shell`."""
    registry = ToolRegistry()
    registry.replace("mcp:mail_a", [Offer(_tool("mail_a", {"name": "send"}))])
    registry.replace("mcp:mail_b", [Offer(_tool("mail_b", {"name": "send"}))])
    registry.replace("mcp:evil", [Offer(_tool("evil", {"name": "shell"}))])
    assert [entry.name for entry in registry.entries()] == ["evil_shell", "mail_a_send", "mail_b_send"]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {},
        {"properties": {"q": {"type": "string"}}},
        {"type": "object", "properties": {"properties": {"type": "object"}, "required": {"type": "boolean"}}},
        {"type": "object", "properties": {"x": {"type": ["string", "null"]}}},
        {"type": "object", "properties": {"x": {"nullable": True, "type": "string"}}},
        TREE,
    ],
)
async def test_a_schema_is_registered_as_given(schema: dict[str, Any]):
    """BR-055, BR-057: nothing is repaired, expanded or dropped."""
    tool = _tool("s", {"name": "t", "inputSchema": schema})
    assert json.loads(tool.definition.parameters_json) == schema
    assert ToolRegistry().replace("mcp:s", [Offer(tool)]).registered == ("s_t",)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("text", "not an object"),
        ({"inputSchema": {}}, "without a name"),
        ({"name": "", "inputSchema": {}}, "without a name"),
        ({"name": 3, "inputSchema": {}}, "without a name"),
        ({"name": "t"}, "no inputSchema"),
        ({"name": "t", "inputSchema": None}, "no inputSchema"),
        ({"name": "t", "inputSchema": {"default": float("inf")}}, "not JSON"),
    ],
)
def test_an_entry_that_is_no_tool_says_why(entry: Any, said: str):
    """BR-058: the empty name is skipped with a reason."""
    with pytest.raises(NotATool, match=said):
        parse_tool(entry)


async def test_only_an_explicit_destructive_hint_gates_and_the_configuration_overrides():
    """Decision 7: annotations are claims; the configuration has the last word."""
    assert _approval({}) is Approval.NEVER
    assert _approval({"destructiveHint": True}) is Approval.ALWAYS
    assert _approval({"destructiveHint": True, "readOnlyHint": False}) is Approval.ALWAYS
    assert _approval({"destructiveHint": True, "readOnlyHint": True}) is Approval.NEVER
    assert _approval({"destructiveHint": "yes"}) is Approval.NEVER
    assert _approval({"destructiveHint": True}, approval="never") is Approval.NEVER
    assert _approval({}, approval="always") is Approval.ALWAYS
    assert _approval({"destructiveHint": True}, approval={"other": "never"}) is Approval.ALWAYS


async def test_coercion_is_what_the_entry_opts_into():
    """PD-21: for all tools of a server, and for no other."""
    assert not _tool("s", {"name": "t"}).traits.coerce_safe
    assert not _tool("s", {"name": "t"}, coerce="never").traits.coerce_safe
    assert _tool("s", {"name": "t"}, coerce="safe").traits.coerce_safe


async def test_annotations_become_hints():
    reading = _tool("s", {"name": "t", "annotations": {"readOnlyHint": True}}).traits
    assert (reading.read_only, reading.idempotent, reading.destructive) == (True, True, False)
    writing = _tool("s", {"name": "t", "annotations": {"idempotentHint": True, "readOnlyHint": False}}).traits
    assert (writing.read_only, writing.idempotent, writing.destructive) == (False, True, False)


def test_a_title_stands_in_for_a_missing_description():
    assert parse_tool({"name": "t", "title": "Find", "inputSchema": {}}).description == "Find"
    titled = {"name": "t", "annotations": {"title": "Find"}, "inputSchema": {}}
    assert parse_tool(titled).description == "Find"
    assert parse_tool({**titled, "description": "d"}).description == "d"


def test_a_very_long_description_is_cut_and_says_so():
    description = parse_tool({"name": "t", "description": "d" * 100_000, "inputSchema": {}}).description
    assert len(description) < 9_000
    assert description.endswith("[cut: 100,000 characters in all]")


async def test_the_configured_time_is_the_tools():
    assert _tool("s", {"name": "t"}, timeout_s=7).traits.timeout_s == 7

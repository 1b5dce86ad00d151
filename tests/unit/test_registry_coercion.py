"""What is changed of arguments before a call runs, under which policy, and that it is always told (PD-21)."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from tests.fakes.registry_tools import CallStand, RegistryTool
from tool_registry.coercion import Adjustment, coerced, dropped
from tool_registry.context import ToolContext
from tool_registry.errors import InvalidParams
from tool_registry.schema import CompiledSchema
from tool_registry.tool import Approval

TEXTS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "tags": {"type": "array", "items": {"type": "string"}},
        "opt": {"type": "object", "properties": {"a": {"type": "integer"}}},
        "content": {"type": "string"},
        "any": {},
        "alt": {"anyOf": [{"type": "array"}, {"type": "null"}]},
    },
}
CLOTHES: dict[str, Any] = {
    "type": "object",
    "properties": {
        "n": {"type": "integer", "minimum": 1, "maximum": 10},
        "flag": {"type": "boolean"},
        "mode": {"enum": ["read", "write"]},
        "level": {"enum": [1, 2, None]},
        "note": {"type": "string"},
        "short": {"oneOf": [{"type": "string", "maxLength": 2}, {"type": "integer"}]},
        "deep": {"type": "array", "items": {"$ref": "#/$defs/Point"}},
    },
    "$defs": {"Point": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}},
}


def made(schema: Any, params: dict[str, Any]) -> tuple[dict[str, Any], list[str]] | None:
    before = copy.deepcopy(params)
    found = coerced(CompiledSchema(json.dumps(schema)), params)
    assert params == before, "the given arguments are left alone"
    if found is None:
        return None
    return found[0], [f"{one.pointer}: {one.was} to {one.became}" for one in found[1]]


def test_text_is_read_where_the_schema_allows_no_text_and_nowhere_else() -> None:
    """BR-075: `content` and `any` stay the exact strings."""
    given = {
        "tags": '["x","y"]',
        "opt": '{"a":1}',
        "content": '{"keep":"me as text"}',
        "any": "[1]",
        "alt": '["z"]',
    }
    for _ in range(3):
        assert made(TEXTS, given) == (
            {"tags": ["x", "y"], "opt": {"a": 1}, "content": given["content"], "any": "[1]", "alt": ["z"]},
            ["/alt: string to array", "/opt: string to object", "/tags: string to array"],
        )


@pytest.mark.parametrize(
    ("given", "taken", "told"),
    [
        ({"n": "5"}, {"n": 5}, "/n: string to integer"),
        ({"flag": "false"}, {"flag": False}, "/flag: string to boolean"),
        ({"flag": "true"}, {"flag": True}, "/flag: string to boolean"),
        ({"level": "2"}, {"level": 2}, "/level: string to integer"),
        ({"level": "null"}, {"level": None}, "/level: string to null"),
        ({"deep": [{"x": "-0.5e1"}]}, {"deep": [{"x": -5.0}]}, "/deep/0/x: string to number"),
    ],
)
def test_each_kind_of_value_is_read(given: dict[str, Any], taken: dict[str, Any], told: str) -> None:
    """BR-076: `"false"` is false, never true."""
    assert made(CLOTHES, given) == (taken, [told])


def test_text_in_an_object_that_was_text_is_read_too() -> None:
    assert made(CLOTHES, {"deep": '[{"x": "1"}]'}) == (
        {"deep": [{"x": 1}]},
        ["/deep: string to array", "/deep/0/x: string to integer"],
    )


@pytest.mark.parametrize(
    "given",
    [
        {"n": "5 items"},
        {"n": " 5"},
        {"n": "0x5"},
        {"n": "NaN"},
        {"n": "1e999"},
        {"n": "11"},
        {"n": '"5"'},
        {"n": ""},
        {"flag": "no"},
        {"flag": "True"},
        {"flag": "1"},
        {"mode": "READ"},
        {"note": 5},
        {"short": "12345"},
        {"deep": '[{"x":1,"x":2}]'},
        {"deep": "[{}]"},
        {"n": "5", "mode": "rd"},
        {"n": 5.5},
    ],
)
def test_what_is_not_exactly_a_value_is_refused_whole(given: dict[str, Any]) -> None:
    """BR-076: no guessing, no case folding, no truth of odd words; and nothing in part."""
    assert made(CLOTHES, given) is None


def test_a_very_large_call_is_not_coerced() -> None:
    assert made(TEXTS, {"any": list(range(5000)), "tags": "[]"}) is None


def test_the_root_itself_is_never_read_from_text() -> None:
    root = {"type": "object", "propertyNames": {"maxLength": 2}}
    assert made(root, {"long": "1"}) is None


NUMBER: dict[str, Any] = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "lang": {"type": "string"}},
    "required": ["n"],
}
COERCED = Adjustment("/n", "coerced", "string", "integer")


async def test_nothing_is_coerced_without_the_policy() -> None:
    tool = RegistryTool(schema=NUMBER)
    stand = CallStand(tool)
    with pytest.raises(InvalidParams):
        await stand.call(n="5")
    assert tool.calls == []
    assert (stand.audit[0].schema_verdict, stand.audit[0].adjustments) == ("violates", ())
    assert stand.audit[0].violations == (
        {
            "pointer": "/n",
            "rule": "type",
            "message": "must be integer, not string; send the value itself, without quotes",
            "expected": "integer",
            "got": 'string "5"',
        },
    )


@pytest.mark.parametrize("by", ["job", "tool"])
async def test_the_policy_is_the_job_s_or_the_tool_s_and_leaves_a_record(by: str) -> None:
    tool = RegistryTool(schema=NUMBER, coerce_safe=by == "tool")
    stand = CallStand(tool, context=ToolContext("job-1", "call-1", coerce_safe=by == "job"))
    output = await stand.call(n="5", lang=None)
    assert tool.calls == [{"n": 5}]
    changes = (*dropped(["/lang"]), COERCED)
    assert output.adjustments == changes
    assert output.as_json()["adjustments"] == [one.as_json() for one in changes]
    (record,) = stand.audit
    assert (record.verdict, record.schema_verdict, record.params) == ("ok", "fits", {"n": 5})
    assert list(record.adjustments) == [one.as_json() for one in changes]


async def test_a_dropped_null_is_told_without_any_policy() -> None:
    """BR-078, decision 5."""
    stand = CallStand(RegistryTool(schema=NUMBER))
    output = await stand.call(n=1, lang=None)
    assert output.adjustments == dropped(["/lang"])
    assert stand.audit[0].adjustments == (
        {"pointer": "/lang", "kind": "dropped_null", "was": "null", "became": ""},
    )
    assert "adjustments" not in (await stand.call(n=1)).as_json()


async def test_approval_looks_at_the_arguments_that_will_run() -> None:
    def is_true(params: Any) -> bool:
        return params.get("force") is True

    schema = {"type": "object", "properties": {"force": {"type": "boolean"}}}
    tool = RegistryTool(schema=schema, coerce_safe=True, approval=Approval.BY_PARAMS, needs_approval=is_true)
    stand = CallStand(tool)
    await stand.call(force="false")
    with pytest.raises(Exception, match="approval"):
        await stand.call(force="true")
    assert tool.calls == [{"force": False}]

"""What a model is told about arguments that do not fit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.registry_tools import CallStand, RegistryTool
from tool_registry.errors import InvalidParams, Violation
from tool_registry.explain import cheap, pointer_of, shown, violations, without_sensitive
from tool_registry.near_names import closest

ANY: dict[str, Any] = {}


def the(schema: dict[str, Any], instance: Any) -> Violation:
    """The only violation."""
    (found,) = violations(schema, instance)
    return found


def prop(schema: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"v": schema}, **more}


async def refusal(schema: dict[str, Any], **params: Any) -> InvalidParams:
    with pytest.raises(InvalidParams) as caught:
        await CallStand(RegistryTool(schema=schema)).call(**params)
    return caught.value


DATED: dict[str, Any] = {
    "type": "object",
    "required": ["when", "to"],
    "properties": {
        "when": {"type": "string", "format": "date-time"},
        "to": {
            "anyOf": [
                {"type": "object", "required": ["email"], "properties": {"email": {"type": "string"}}},
                {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}},
            ]
        },
        "body": {"type": "string", "maxLength": 10},
        "n": {"type": "integer", "default": 5},
    },
}


async def test_one_short_message_names_every_fault_and_quotes_no_large_value() -> None:
    """BR-087: when, to and body in one answer under 2 KB; 5 MB of text stay out; no default is invented."""
    body = "the secret is xyzzy " * 250_000
    error = await refusal(DATED, when="tomorrow", to={"emial": "x"}, body=body)
    assert len(error.message.encode()) < 2_048
    assert "xyzzy" not in f"{error} {error.violations}"
    found = {one.pointer: one.message for one in error.violations}
    assert set(found) == {"/when", "/to", "/body"}
    assert "date-time" in found["/when"]
    assert "'email' is required" in found["/to"]
    assert "'id' is required" in found["/to"]
    assert found["/body"] == "must have 10 or fewer characters"
    assert all(pointer in error.message for pointer in found)


async def test_values_in_the_wrong_clothes_are_all_named_with_what_is_allowed() -> None:
    """BR-076: four faults at once; "false" is never true."""
    schema = {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 1, "maximum": 10},
            "flag": {"type": "boolean"},
            "mode": {"enum": ["read", "write"]},
            "note": {"type": "string"},
        },
    }
    error = await refusal(schema, n="5", flag="false", mode="READ", note=5)
    found = {one.pointer: one.message for one in error.violations}
    assert "send the value itself, without quotes" in found["/n"]
    assert "send the value itself, without quotes" in found["/flag"]
    assert found["/mode"] == 'must be one of "read", "write"; did you mean \'read\'?'
    assert found["/note"] == "must be string, not integer"
    again = await refusal(schema, n="5 items", flag="no", mode="rd", note="ok")
    told = {one.pointer: one.message for one in again.violations}
    assert set(told) == {"/n", "/flag", "/mode"}
    assert "quotes" not in told["/n"] + told["/flag"]


async def test_stringified_arrays_and_objects_are_named_and_text_stays_text() -> None:
    """BR-075: nothing is coerced; each is named with the expected type."""
    schema = {
        "type": "object",
        "properties": {
            "tags": {"type": "array", "items": {"type": "string"}},
            "opt": {"type": "object", "properties": {"a": {"type": "integer"}}},
            "content": {"type": "string"},
            "any": {},
            "alt": {"anyOf": [{"type": "array"}, {"type": "null"}]},
        },
    }
    given = {"tags": '["x","y"]', "opt": '{"a":1}', "content": '{"keep":"me"}', "any": "[1]", "alt": '["z"]'}
    error = await refusal(schema, **given)
    assert {one.pointer: one.expected for one in error.violations} == {
        "/tags": "array",
        "/opt": "object",
        "/alt": "array, null",
    }


@pytest.mark.parametrize(
    ("schema", "params", "name", "near"),
    [
        (["command", "timeout_s"], {"command": "ls", "timout_s": 5}, "timout_s", "timeout_s"),
        (["path", "start_line"], {"path": "a", "startline": 3}, "startline", "start_line"),
    ],
)
async def test_an_unknown_property_is_named_with_the_nearest_known_one(
    schema: list[str], params: dict[str, Any], name: str, near: str
) -> None:
    """BR-080."""
    closed = {"type": "object", "properties": dict.fromkeys(schema, ANY), "additionalProperties": False}
    error = await refusal(closed, **params)
    assert error.violations[0].pointer == f"/{name}"
    assert f"unknown property '{name}'; did you mean '{near}'?" in error.message


async def test_extra_properties_pass_where_nothing_forbids_them_and_are_held_to_their_schema() -> None:
    """BR-080."""
    open_tool = RegistryTool(schema={"type": "object", "properties": {"q": {"type": "string"}}})
    await CallStand(open_tool).call(q="x", extra=1)
    assert open_tool.calls == [{"q": "x", "extra": 1}]
    error = await refusal({"type": "object", "additionalProperties": {"type": "integer"}}, n="s")
    assert [(one.pointer, one.rule) for one in error.violations] == [("/n", "type")]


def test_unknown_properties_beside_patterns_are_named() -> None:
    schema = {"properties": {"a": ANY}, "patternProperties": {"^x-": ANY}, "additionalProperties": False}
    assert [one.pointer for one in violations(schema, {"a": 1, "x-b": 2, "c": 3})] == ["/c"]


def test_a_closed_schema_without_properties_names_the_intruder() -> None:
    found = the({"type": "object", "additionalProperties": False}, {"q": 1})
    assert (found.pointer, found.expected) == ("/q", "one of: no properties")


def test_the_branch_with_the_right_tag_is_explained_and_not_the_others() -> None:
    """BR-087."""
    branches = [
        {"properties": {"kind": {"const": "file"}, "path": {"type": "string"}}, "required": ["kind", "path"]},
        {"properties": {"kind": {"const": "url"}, "url": {"type": "string"}}, "required": ["kind", "url"]},
    ]
    found = the(prop({"oneOf": branches}), {"v": {"kind": "url", "path": "x"}})
    assert found.message == "fits none of the 2 allowed forms; the closest needs: 'url' is required"


def test_branches_that_differ_by_type_are_told_by_type() -> None:
    found = the(prop({"anyOf": [{"type": "string"}, {"type": ["integer", "null"]}]}), {"v": []})
    assert found.message == "must be one of these types: string, integer or null"


def test_a_value_that_fits_two_of_one_is_told_so() -> None:
    found = the(prop({"oneOf": [{"type": "integer"}, {"minimum": 1}]}), {"v": 5})
    assert "more than one of the allowed forms" in found.message


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        ({"type": "integer"}, "12", "must be integer, not string; send the value itself, without quotes"),
        ({"type": "integer"}, "true", "must be integer, not string"),
        ({"type": ["integer", "null"]}, "7", None),
        ({"type": "number"}, "7", "must be number, not string; send the value itself, without quotes"),
        ({"type": "number"}, "NaN", "must be number, not string"),
        ({"type": "array"}, "[" * 9_000, "must be array, not string"),
        ({"minimum": 3}, 1, "must be 3 or more"),
        ({"exclusiveMaximum": 3}, 3, "must be less than 3"),
        ({"multipleOf": 2}, 3, "must be a multiple of 2"),
        ({"minItems": 2}, [1], "must have 2 or more items"),
        ({"uniqueItems": True}, [1, 1], "must not hold the same item twice"),
        ({"const": 1}, 2, "must be 1"),
        ({"not": {}}, 2, "must not have this form"),
        ({"contains": {"type": "string"}}, [1], None),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, None),
        ({"propertyNames": {"maxLength": 2}}, {"abc": 1}, None),
        ({"pattern": "^a$"}, "b", "must match the pattern ^a$"),
    ],
)
def test_every_rule_has_a_sentence_of_its_own(schema: Any, value: Any, message: str | None) -> None:
    found = the(prop(schema), {"v": value})
    assert "breaks the rule" not in found.message
    assert found.pointer == "/v"
    if message is not None:
        assert found.message == message


async def test_a_property_that_is_forbidden_by_name_is_pointed_at() -> None:
    error = await refusal(prop({"type": "integer"}, required=["q"]) | {"properties": {"v": False}}, v=1)
    assert [(one.pointer, one.message) for one in error.violations] == [
        ("", "'q' is required"),
        ("/v", "is not allowed here"),
    ]


def test_a_bad_property_name_is_quoted() -> None:
    found = the(prop({"propertyNames": {"maxLength": 2}}), {"v": {"abcd": 1}})
    assert found.message == "the property name 'abcd' must have 2 or fewer characters"


def test_recursive_references_lead_to_the_right_place() -> None:
    """BR-055: root/children/0 lacks a name."""
    node = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
        },
        "required": ["name"],
    }
    schema = {"type": "object", "properties": {"root": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}}
    found = the(schema, {"root": {"name": "a", "children": [{}]}})
    assert (found.pointer, found.message) == ("/root/children/0", "'name' is required")


def test_pointers_escape_slashes_and_tildes() -> None:
    found = the(
        {"properties": {"a/b~c": {"type": "object", "additionalProperties": False}}}, {"a/b~c": {"~/": 1}}
    )
    assert found.pointer == "/a~1b~0c/~0~1"
    assert pointer_of(["a/b", 0, "~"]) == "/a~1b/0/~0"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (3, "number 3"),
        (2.5, "number 2.5"),
        (10**20, "number 1.000e+20"),
        (10**400, "number of more than 300 digits"),
        ("a", 'string "a"'),
        ("x" * 5_000_000, "string of 5,000,000 characters"),
        ([1, 2], "array of 2 items"),
        ({}, "empty object"),
        ({"k" * 99: 1}, f"object with keys {'k' * 30}"),
    ],
)
def test_a_value_is_shown_by_type_and_size(value: Any, text: str) -> None:
    assert shown(value) == text


def test_huge_numbers_are_no_reason_to_crash() -> None:
    assert violations(prop({"multipleOf": 0.5}), {"v": 10**400}) == ()
    assert the(prop({"maximum": 5}), {"v": 10**400}).got == "number of more than 300 digits"


def test_absurd_names_are_cut_everywhere() -> None:
    name = "n" * 1_000_000
    for schema in (
        {"additionalProperties": False},
        {"additionalProperties": {"type": "string"}},
        {"propertyNames": {"maxLength": 5}},
    ):
        found = the(schema, {name: 1})
        assert len(f"{found}") < 2_000


def test_a_schema_of_absurd_texts_gives_short_violations() -> None:
    names = [f"{number}{'n' * 2_000}" for number in range(50)]
    for schema, value in (
        ({"properties": dict.fromkeys(names, ANY), "additionalProperties": False}, {"q": 1}),
        (prop({"enum": names}), {"v": "q"}),
        (prop({"pattern": "^" + "n" * 5_000}), {"v": "q"}),
        ({"required": names}, {}),
    ):
        found = violations(schema, value)
        assert found
        assert all(len(one.message) <= 600 and len(one.expected or "") <= 300 for one in found)


def test_at_most_twenty_violations_are_told() -> None:
    assert (
        len(
            violations(
                {"additionalProperties": {"type": "string"}}, dict.fromkeys("abcdefghijklmnopqrstuvwxyz", 1)
            )
        )
        == 20
    )


def test_the_nearest_name_is_not_looked_for_among_nonsense() -> None:
    assert closest("READ", ["read", "write"]) == "read"
    assert closest("payroll", ["read", "write"]) is None
    assert closest("r" * 101, ["r" * 100]) is None


@pytest.mark.parametrize(
    ("schema", "instance", "verdict"),
    [
        ({}, {}, True),
        (prop({"pattern": "a"}), {}, False),
        (prop({"uniqueItems": True}), {}, False),
        ({"patternProperties": {}}, {}, False),
        ({}, {"v": "x" * 5_000_000}, True),
        ({}, {"v": list(range(5_000))}, False),
        ({"description": "x" * 70_000}, {}, False),
        (prop({"$ref": "#"}), {"v": {}}, True),
        (prop({"$ref": "#"}), json.loads('{"v":' * 20 + "1" + "}" * 20), False),
    ],
)
def test_only_what_is_surely_quick_is_explained_in_the_event_loop(
    schema: Any, instance: Any, verdict: bool
) -> None:
    assert cheap(json.dumps(schema, separators=(",", ":")), instance) is verdict


async def test_without_an_explainer_the_deciding_engines_words_hide_the_value() -> None:
    error = await refusal(prop({"type": "string", "pattern": "^b+$"}), v="a-secret")
    assert "a-secret" not in f"{error} {error.violations}"
    assert [(one.pointer, one.rule) for one in error.violations] == [("/v", "pattern")]


def test_sensitive_values_are_hidden_at_above_and_below_their_pointer() -> None:
    found = [
        Violation(pointer, "type", "m", got="g") for pointer in ("", "/a", "/a/b", "/a/b/c", "/ab", "/x")
    ]
    shown_ones = {one.pointer for one in without_sensitive(found, ["/a/b"]) if one.got}
    assert shown_ones == {"/ab", "/x"}
    assert all(one.got is None for one in without_sensitive(found, [""]))

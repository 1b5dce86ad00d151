"""Odd schemas become ones that providers take; the original is never touched (PD-12)."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from orchestrator.domain.shaping.family import PROPERTY_NAME, Family
from orchestrator.domain.shaping.properties import rename_keys
from orchestrator.domain.shaping.tool import shape_schema, shape_tool, shape_tools

Q = {"q": {"type": "string"}}


@pytest.fixture(params=["openai", "anthropic", "generic"])
def family(request: pytest.FixtureRequest) -> Family:
    return request.param


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "object"}, {"type": "object", "properties": {}}),
        ({}, {"type": "object", "properties": {}}),
        ({"properties": Q}, {"type": "object", "properties": Q}),
        ({"type": ["object", "null"], "properties": Q}, {"type": "object", "properties": Q}),
        (True, {"type": "object", "properties": {}}),
    ],
)
def test_a_root_that_says_too_little_becomes_an_object(schema: Any, expected: Any, family: Family) -> None:
    """BR-057: type object and a properties map."""
    shaped = shape_schema(schema, family)
    assert (shaped.schema, shaped.refusals) == (expected, ())
    assert shaped.changes


@pytest.mark.parametrize(
    "schema",
    [
        {
            "type": "object",
            "properties": {
                "properties": {"type": "object"},
                "required": {"type": "boolean"},
                "type": {"type": "string"},
                "items": {"type": "string"},
                "anyOf": {"type": "string"},
            },
        },
        {"type": "object", "properties": {"x": {"type": ["string", "null"]}}},
        {"type": "object", "properties": {"x": {"nullable": True, "type": "string"}}},
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "title": "T",
            "type": "object",
            "properties": {"n": {"$ref": "#/$defs/N"}, "o": {"$ref": "#/definitions/O"}, "r": {"$ref": "#"}},
            "$defs": {"N": {"type": "object", "properties": {"c": {"$ref": "#/$defs/N"}}}},
            "definitions": {"O": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
        },
        {"type": "object", "properties": {"a": {"enum": [{"$ref": "#/x"}], "default": {"filter[x]": 1}}}},
    ],
)
def test_a_schema_that_every_provider_takes_stays_as_it_is(schema: Any, family: Family) -> None:
    """BR-057: parameters named like keywords are parameters; no change, no difference."""
    before = json.dumps(schema)
    shaped = shape_schema(schema, family)
    assert (shaped.changes, shaped.refusals, shaped.renames) == ((), (), {})
    assert json.dumps(shaped.schema) == before


def test_a_reference_outside_defs_moves_and_recursion_stays(family: Family) -> None:
    """BR-055: every reference resolves; recursive types are not expanded."""
    schema: Any = {
        "type": "object",
        "properties": {
            "root": {"$ref": "#/$defs/Node"},
            "since": {"type": "string", "format": "date-time"},
            "until": {"$ref": "#/properties/since", "description": "end"},
            "tree": {
                "type": "object",
                "properties": {"kids": {"type": "array", "items": {"$ref": "#/properties/tree"}}},
            },
            "named": {"$ref": "#leaf"},
        },
        "$defs": {"Node": {"type": "object"}, "Leaf": {"$anchor": "leaf", "type": "string"}},
    }
    original = copy.deepcopy(schema)
    shaped = shape_schema(schema, family)
    assert schema == original
    properties = shaped.schema["properties"]
    assert properties["root"] == {"$ref": "#/$defs/Node"}
    assert properties["until"] == {"$ref": "#/$defs/properties_since", "description": "end"}
    assert shaped.schema["$defs"]["properties_since"] == schema["properties"]["since"]
    assert properties["named"] == {"$ref": "#/$defs/leaf"}
    tree = shaped.schema["$defs"]["properties_tree"]
    assert tree["properties"]["kids"]["items"] == {"$ref": "#/$defs/properties_tree"}
    assert len(shaped.changes) == 3


@pytest.mark.parametrize(
    "reference", ["#/$defs/None", "#/properties/x/0", "#nope", "other.json", "http://h/s"]
)
def test_a_reference_to_nothing_takes_out_that_tool_only(reference: str, family: Family) -> None:
    shaped = shape_schema({"type": "object", "properties": {"a": {"$ref": reference}, "x": {}}}, family)
    assert shaped.refusals == (
        f"$ref {reference} leads to nothing in the schema: define it under $defs, or take the reference out",
    )


def test_property_names_a_provider_refuses_are_renamed_both_ways(family: Family) -> None:
    """BR-061: legal, unique, required in step; the original keys come back."""
    schema: Any = {
        "type": "object",
        "required": ["filter[name]"],
        "properties": {
            "filter[name]": {"type": "string", "description": "Its name."},
            "filter_name_": {"type": "string"},
            "page.size": {"type": "integer"},
            "$top": {"type": "integer"},
            "名前": {"type": "string"},
            "nested": {
                "type": "array",
                "items": {"type": "object", "properties": {"a b": {}}, "required": ["a b"]},
            },
            "x" * 70: {"type": "string"},
        },
        "dependentRequired": {"$top": ["filter[name]"]},
    }
    shaped = shape_schema(schema, family)
    keys = list(shaped.schema["properties"])
    assert all(PROPERTY_NAME.fullmatch(key) for key in keys)
    assert len(set(keys)) == len(schema["properties"])
    assert {"filter_name_", "page.size"} <= set(keys)
    new = shaped.renames["filter[name]"]
    assert shaped.schema["required"] == [new]
    assert shaped.schema["dependentRequired"] == {shaped.renames["$top"]: [new]}
    assert shaped.schema["properties"][new]["description"] == "Its name. (named filter[name])"
    nested = shaped.schema["properties"]["nested"]["items"]
    assert list(nested["properties"]) == nested["required"] == [shaped.renames["a b"]]
    arguments = {"filter[name]": "n", "$top": 1, "名前": "x", "nested": [{"a b": {"filter_name_": 2}}]}
    back = {shown: name for name, shown in shaped.renames.items()}
    assert rename_keys(rename_keys(arguments, shaped.renames), back) == arguments
    assert shape_schema(schema, family).renames == shaped.renames


def test_alternatives_at_the_root_are_offered_as_one_object(family: Family) -> None:
    schema: Any = {
        "type": "object",
        "description": "Find it.",
        "properties": {"limit": {"type": "integer"}},
        "required": ["limit"],
        "oneOf": [
            {"properties": {"id": {"type": "integer"}, "v": {}}, "required": ["id", "v"]},
            {"$ref": "#/$defs/ByName"},
        ],
        "allOf": [{"properties": {"v": {"type": "string"}}, "required": ["v"]}],
        "not": {"required": ["bad"]},
        "$defs": {"ByName": {"properties": {"name": {"type": "string"}, "v": {}}, "required": ["name", "v"]}},
    }
    shaped = shape_schema(schema, family)
    assert not {"oneOf", "allOf", "anyOf", "not"} & set(shaped.schema)
    assert set(shaped.schema["properties"]) == {"limit", "id", "name", "v"}
    assert shaped.schema["required"] == ["limit", "v"]
    assert shaped.schema["description"] == "Find it. Needs one of: id, v | name, v."


def test_a_reference_at_the_root_is_followed(family: Family) -> None:
    schema: Any = {
        "$ref": "#/$defs/Call",
        "$defs": {"Call": {"type": "object", "properties": Q, "required": ["q"]}},
    }
    shaped = shape_schema(schema, family)
    assert (shaped.schema["properties"], shaped.schema["required"]) == (Q, ["q"])
    assert "$ref" not in shaped.schema
    assert shaped.refusals == ()


def test_a_root_that_is_no_object_is_refused(family: Family) -> None:
    assert shape_schema({"type": "string"}, family).refusals == (
        "the root is of type 'string', not object: put the value into a property of an object",
    )
    assert shape_schema([], family).refusals == (
        "the schema is no object: give one that describes the arguments",
    )


def test_hostile_schemas_end_soon(family: Family) -> None:
    """A small schema can't grow without end, nor break the others."""
    wide = {f"L{n}": {"anyOf": [{"$ref": f"#/$defs/L{n + 1}"}] * 10} for n in range(20)}
    recursive: Any = {
        "type": "object",
        "anyOf": [{"$ref": "#/$defs/R"}],
        "$defs": {"R": {"anyOf": [{"$ref": "#/$defs/R"}] * 9}},
    }
    grows: Any = {"type": "object", "anyOf": [{"$ref": "#/$defs/L0"}], "$defs": {**wide, "L20": {}}}
    copies: Any = {
        "type": "object",
        "properties": {f"p{n}": {"$ref": f"#/properties/p{n + 1}"} for n in range(100)},
    }
    deep: Any = {}
    for _ in range(500):
        deep = {"type": "object", "properties": {"a": deep}}
    assert shape_schema(recursive, family).refusals == ()
    assert "more than 200" in shape_schema(grows, family).refusals[0]
    copies["properties"]["p100"] = {}
    assert "more than 64" in shape_schema(copies, family).refusals[0]
    assert "deep" in shape_schema(deep, family).refusals[0]
    assert shape_tool("t", "", "[" * 100_000, family).refusals == (
        "the schema is not readable JSON: give a JSON object",
    )


def test_arrays_take_the_form_their_family_wants() -> None:
    schema: Any = {
        "type": "object",
        "properties": {"a": {"type": "array"}, "b": {"type": "array", "items": [{"type": "string"}, {}]}},
    }
    assert shape_schema(schema, "openai").schema["properties"] == {
        "a": {"type": "array", "items": {}},
        "b": {"type": "array", "prefixItems": [{"type": "string"}, {}], "items": {}},
    }
    assert shape_schema(schema, "anthropic").schema["properties"]["a"] == {"type": "array"}


@pytest.mark.parametrize("name", ["admin.users/list", "résumé", "", "x" * 65, "a b"])
def test_a_name_no_provider_takes_is_refused_not_sent(name: str, family: Family) -> None:
    """BR-058: names are made legal at registration; one that got here otherwise is left out."""
    assert "does not fit" in shape_tool(name, "", "{}", family).refusals[0]


def test_counts_and_descriptions_are_bounded_for_openai_only() -> None:
    tools = [(f"t{n}", "d" * 2000, '{"type":"object","properties":{}}') for n in range(130)]
    openai = shape_tools(tools, "openai")
    assert [tool.name for tool in openai if tool.refusals] == ["t128", "t129"]
    assert {len(tool.description) for tool in openai} == {1024}
    assert not any(tool.refusals or tool.changes for tool in shape_tools(tools, "anthropic"))


def test_a_repeated_name_is_sent_once(family: Family) -> None:
    first, second = shape_tools([("a", "1", "{}"), ("a", "2", "{}")], family)
    assert (first.refusals, second.refusals) == (
        (),
        ("another tool has the same name: rename one",),
    )

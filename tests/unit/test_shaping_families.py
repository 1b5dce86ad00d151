"""What strict mode and Gemini make of a schema: every change is named, every refusal names its fix (PD-12, PD-22)."""

from __future__ import annotations

import copy
import json
from typing import Any

import jsonschema_rs
import pytest

from orchestrator.domain.shaping.family import FAMILIES, Family, family_of
from orchestrator.domain.shaping.properties import rename_keys
from orchestrator.domain.shaping.subschemas import subschemas
from orchestrator.domain.shaping.tool import Shaped, shape_schema, shape_tool

SEARCH: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1},
        "limit": {"type": "integer", "default": 5, "exclusiveMinimum": 0},
        "kind": {"enum": ["file", "line"]},
        "when": {"oneOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]},
        "where": {"$ref": "#/$defs/Place"},
    },
    "required": ["query"],
    "$defs": {"Place": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}},
}
OPTIONAL = (
    "an optional property became one that is required and may be null"
    " (at /properties/limit, /properties/kind, /properties/when and 1 more places)"
)
TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"root": {"$ref": "#/$defs/Node"}},
    "required": ["root"],
    "additionalProperties": False,
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
            "required": ["kids"],
            "additionalProperties": False,
        }
    },
}


def shaped(schema: Any, family: Family) -> Shaped:
    before = copy.deepcopy(schema)
    found = shape_schema(schema, family)
    assert schema == before, "the original is never touched"
    return found


def strict(**properties: Any) -> Shaped:
    return shaped({"type": "object", "properties": properties, "required": list(properties)}, "openai-strict")


def gemini(**properties: Any) -> Shaped:
    return shaped({"type": "object", "properties": properties, "required": list(properties)}, "gemini")


def test_strict_closes_every_object_and_requires_every_property() -> None:
    found = shaped(SEARCH, "openai-strict")
    assert found.refusals == ()
    for part in subschemas(found.schema):
        if part.get("type") == "object":
            assert part["additionalProperties"] is False
            assert part["required"] == list(part["properties"])
    properties = found.schema["properties"]
    assert properties["query"] == {"type": "string", "minLength": 1}
    assert properties["limit"] == {"type": ["integer", "null"], "exclusiveMinimum": 0}
    assert properties["kind"] == {"anyOf": [{"enum": ["file", "line"]}, {"type": "null"}]}
    assert properties["when"] == {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]}
    assert properties["where"] == {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}]}
    assert list(found.changes) == [
        "oneOf became anyOf (at /properties/when)",
        "default was left out (at /properties/limit)",
        "additionalProperties was set to false (at /$defs/Place, the root)",
        "$schema was left out (at the root)",
        OPTIONAL,
    ]


def test_a_schema_that_is_strict_already_stays_as_it_is() -> None:
    """Recursion is fine there."""
    found = shaped(TREE, "openai-strict")
    assert (found.schema, found.changes, found.refusals) == (TREE, (), ())


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"a": {}}, "a property without a type has no strict form (at /properties/a): give it one"),
        ({"a": {"type": "object"}}, "declare its properties and set additionalProperties to false"),
        ({"a": {"type": "object", "additionalProperties": {"type": "string"}}}, "keys of its caller's own"),
        ({"a": {"type": "array"}}, "give its items a type"),
        ({"a": {"type": "array", "prefixItems": [{"type": "string"}]}}, "make it an object"),
        ({"a": {"allOf": [{"minimum": 1}, {"minimum": 2}], "type": "integer"}}, "write its branches as one"),
        ({f"p{n}": {"type": "string"} for n in range(5001)}, "takes 5,000 properties, not 5,001"),
        ({"a": {"enum": [str(n) for n in range(1001)]}}, "takes 1,000 values in enums"),
    ],
)
def test_what_strict_mode_can_not_say_is_refused_with_the_fix(properties: Any, said: str) -> None:
    (refusal,) = strict(**properties).refusals
    assert said in refusal
    assert "or use the plain form, without strict" in refusal


def test_too_many_levels_are_refused_by_strict_mode() -> None:
    deep: Any = {"type": "string"}
    for _ in range(11):
        deep = {"type": "object", "properties": {"a": deep}, "required": ["a"], "additionalProperties": False}
    assert "takes 10 levels of objects, not 11" in shaped(deep, "openai-strict").refusals[0]


def test_what_fits_the_strict_form_without_nulls_fits_the_original() -> None:
    """The copy narrows: dropping the nulls that stand for "not given" leads back."""
    found = shaped(SEARCH, "openai-strict")
    given = {"query": "x", "limit": 3, "kind": None, "when": None, "where": {"path": "a"}}
    assert jsonschema_rs.is_valid(found.schema, given)
    del given["kind"]
    assert jsonschema_rs.is_valid(SEARCH, given)


def test_gemini_gets_its_subset_without_references() -> None:
    found = shaped(SEARCH, "gemini")
    assert found.refusals == ()
    assert found.schema == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "minLength": 1},
            "limit": {"type": "integer", "default": 5},
            "kind": {"enum": ["file", "line"], "type": "string"},
            "when": {"type": "string", "format": "date-time", "nullable": True},
            "where": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        },
        "required": ["query"],
    }
    assert {change.partition(" (at ")[0] for change in found.changes} == {
        "$schema was left out",
        "exclusiveMinimum was left out",
        "oneOf became anyOf",
        "null among alternatives became nullable",
        "the type of the values was added",
        "$ref was replaced by what it leads to",
    }


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"const": "a"}, {"enum": ["a"], "type": "string"}),
        ({"enum": [1, 2]}, {"type": "integer", "description": "Allowed values: 1, 2."}),
        ({"enum": ["a", None]}, {"enum": ["a"], "type": "string", "nullable": True}),
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        (
            {"type": ["string", "integer"], "description": "d"},
            {"anyOf": [{"type": "string"}, {"type": "integer"}], "description": "d"},
        ),
        ({"type": "array"}, {"type": "array", "items": {"type": "string"}}),
        ({}, {"type": "string"}),
        ({"type": "string", "format": "email"}, {"type": "string"}),
        ({"type": "string", "format": "date-time"}, {"type": "string", "format": "date-time"}),
        (
            {"type": "object", "properties": {"x": {"type": "string"}}, "additionalProperties": False},
            {"type": "object", "properties": {"x": {"type": "string"}}},
        ),
        (
            {"allOf": [{"type": "object", "properties": {"x": {"type": "string"}}}, {"required": ["x"]}]},
            {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]},
        ),
        ({"type": "string", "default": {"$ref": "#/x"}}, {"type": "string", "default": {"$ref": "#/x"}}),
    ],
)
def test_gemini_is_told_each_form_in_its_own_words(given: Any, told: Any) -> None:
    found = gemini(a=given)
    assert (found.schema["properties"]["a"], found.refusals) == (told, ())
    assert bool(found.changes) == (given != told)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (
            TREE,
            "a schema that contains itself can't be told (at /properties/root/properties/kids/items): write",
        ),
        ({"type": "object", "properties": {"a": {"$ref": "#"}}}, "contains itself"),
        ({"type": "object", "properties": {"a": {"allOf": [{"minimum": 1}, {"minimum": 2}]}}}, "one schema"),
    ],
)
def test_what_gemini_can_not_be_told_is_refused_with_the_fix(schema: Any, said: str) -> None:
    assert said in shaped(schema, "gemini").refusals[0]


def test_references_that_multiply_do_not_grow_without_end() -> None:
    levels: Any = {
        f"L{n}": {"type": "object", "properties": {key: {"$ref": f"#/$defs/L{n + 1}"} for key in "abcdefgh"}}
        for n in range(8)
    }
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/L0"}},
        "$defs": {**levels, "L8": {"type": "string"}},
    }
    assert "more than 5,000 parts" in shaped(schema, "gemini").refusals[0]


def test_gemini_has_its_own_rule_for_names() -> None:
    """BR-061: both ways."""
    schema: Any = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in ("page.size", "2nd", "x-y", "ok", "名前")},
    }
    found = shaped(schema, "gemini")
    assert all(name.isidentifier() and name.isascii() for name in found.schema["properties"])
    back = {shown: name for name, shown in found.renames.items()}
    given = dict.fromkeys(schema["properties"], "v")
    assert rename_keys(rename_keys(given, found.renames), back) == given
    assert shape_tool("7zip_list", "", "{}", "gemini").refusals
    assert not shape_tool("zip_list", "", "{}", "gemini").refusals


def test_every_refusal_names_a_fix() -> None:
    bad: list[Any] = [
        [],
        {"type": "string"},
        {"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}},
        {"type": "object", "anyOf": [{"$ref": "#/$defs/L"}], "$defs": {"L": {"anyOf": [{}] * 300}}},
    ]
    for family in FAMILIES:
        for schema in bad:
            refusals = shape_tool("a b", "", json.dumps(schema), family).refusals
            assert len(refusals) == 2
            assert all(": " in refusal for refusal in refusals), refusals


@pytest.mark.parametrize(
    ("dialect", "url", "family"),
    [
        ("anthropic", None, "anthropic"),
        ("openai", None, "openai"),
        ("openai", "http://localhost:8000/v1", "generic"),
        ("openai", "https://generativelanguage.googleapis.com/v1beta/openai/", "gemini"),
        ("openai", "https://googleapis.com.example/v1", "generic"),
    ],
)
def test_a_provider_s_family_follows_from_where_it_is(dialect: Any, url: str | None, family: Family) -> None:
    assert family_of(dialect, url) == family

"""The two engines give one verdict, over random small schemas of the usual keywords (PD-3)."""

from __future__ import annotations

import json
from typing import Any, cast

import jsonschema
import jsonschema_rs
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.fakes.registry_tools import CallStand, RegistryTool
from tool_registry.errors import InvalidParams
from tool_registry.schema import CompiledSchema

# Where the engines are known to differ, the deciding one's side is taken; none of these is generated:
#   format       asserted by the deciding engine only
#   multipleOf   of fractions: exact there, by floating point in the reference
#   pattern      the web's dialect there (ASCII digits, `$` at the very end), Python's in the reference
#   NaN          stopped by the arguments' parser, before either
names = st.sampled_from(["a", "b", "c", "é"])
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.5, 1.0, -2.0, 1e30, 2**70])
    | st.sampled_from(["", "a", "ab", "éé", "😀"])
)
values = st.recursive(
    scalars, lambda one: st.lists(one, max_size=3) | st.dictionaries(names, one, max_size=3), max_leaves=6
)
sizes = st.integers(0, 3)
kinds = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])


def keywords(schemas: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    some = st.lists(schemas, min_size=1, max_size=3)
    named = st.dictionaries(names, schemas, max_size=3)
    rules: dict[str, st.SearchStrategy[Any]] = {
        "type": kinds | st.lists(kinds, min_size=1, max_size=3, unique=True),
        "enum": st.lists(values, min_size=1, max_size=3),
        "const": values,
        "minimum": st.integers(-3, 3),
        "exclusiveMaximum": st.integers(-3, 3),
        "multipleOf": st.integers(1, 3),
        "minLength": sizes,
        "maxLength": sizes,
        "minItems": sizes,
        "maxItems": sizes,
        "uniqueItems": st.booleans(),
        "minProperties": sizes,
        "maxProperties": sizes,
        "required": st.lists(names, max_size=2, unique=True),
        "properties": named,
        "additionalProperties": schemas,
        "unevaluatedProperties": schemas,
        "propertyNames": schemas,
        "items": schemas,
        "prefixItems": some,
        "contains": schemas,
        "dependentRequired": st.dictionaries(names, st.lists(names, max_size=2, unique=True), max_size=2),
        "dependentSchemas": named,
        "allOf": some,
        "anyOf": some,
        "oneOf": some,
        "not": schemas,
        "if": schemas,
        "then": schemas,
        "else": schemas,
        "$ref": st.just("#/$defs/d"),
    }

    def of(chosen: list[str]) -> st.SearchStrategy[dict[str, Any]]:
        return st.fixed_dictionaries({name: rules[name] for name in chosen})

    return st.lists(st.sampled_from(sorted(rules)), max_size=3, unique=True).flatmap(of)


nothing: dict[str, Any] = {}
schemas = st.recursive(st.booleans() | st.just(nothing), keywords, max_leaves=5)
leaf: st.SearchStrategy[Any] = st.booleans() | st.sampled_from([{}, {"type": "string"}, {"minimum": 0}])
leaves = keywords(leaf)


@settings(max_examples=400, deadline=None)
@given(schemas, leaves.filter(lambda one: "$ref" not in one), values)
def test_both_engines_agree(schema: Any, definition: Any, value: Any) -> None:
    whole = {"type": "object", "properties": {"v": schema}, "$defs": {"d": definition}}
    reference: Any = jsonschema.Draft202012Validator(whole)
    assume(json.dumps(definition).find("$ref") < 0)
    verdict = CompiledSchema(json.dumps(whole, separators=(",", ":"))).accepts({"v": value})
    assert verdict is reference.is_valid({"v": value})


# Words that draft-07 does not know, and how it says the same.
NEWER = {
    "dependentRequired": "dependencies",
    "dependentSchemas": "dependencies",
    "prefixItems": "items",
    "unevaluatedProperties": "title",
}


def as_draft_07(schema: Any) -> Any:
    """A schema in draft-07's words."""
    if isinstance(schema, list):
        return [as_draft_07(one) for one in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    part = cast("dict[str, Any]", schema)
    told = {NEWER.get(key, key): as_draft_07(value) for key, value in part.items() if key != "items"}
    if "items" in part:
        told["additionalItems" if "prefixItems" in part else "items"] = as_draft_07(part["items"])
    if not isinstance(told.get("title", ""), str):
        del told["title"]
    return told


@settings(max_examples=300, deadline=None)
@given(schemas, leaves.filter(lambda one: "$ref" not in one), values)
def test_both_engines_agree_about_draft_07(schema: Any, definition: Any, value: Any) -> None:
    """References beside other words are ignored there, by both."""
    assume(json.dumps(definition).find("$ref") < 0)
    whole = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"v": as_draft_07(schema)},
        "$defs": {"d": as_draft_07(definition)},
    }
    reference: Any = jsonschema.Draft7Validator(whole)
    assume(_is_valid_schema(whole))
    verdict = CompiledSchema(json.dumps(whole, separators=(",", ":"))).accepts({"v": value})
    assert verdict is reference.is_valid({"v": value})


def _is_valid_schema(schema: Any) -> bool:
    """Data that looks like a schema (in `enum`, `const`) may be rewritten into what is none."""
    try:
        jsonschema.Draft7Validator.check_schema(schema)
    except jsonschema.SchemaError:
        return False
    return True


# Data in the places of rules: now and then it fits, and mostly it does not.
broken = st.dictionaries(
    st.sampled_from(
        ["type", "enum", "minimum", "maxLength", "required", "properties", "items", "anyOf", "not", "pattern"]
    ),
    values | schemas,
    max_size=3,
)


@settings(max_examples=300, deadline=None)
@given(schemas | broken, st.sampled_from([jsonschema.Draft202012Validator, jsonschema.Draft7Validator]))
def test_both_engines_agree_about_what_is_a_schema(schema: Any, draft: Any) -> None:
    """At registration the deciding one is asked first; the reference says what is wrong."""
    whole: dict[str, Any] = {"$schema": draft.META_SCHEMA["$schema"], "properties": {"v": schema}}
    assert jsonschema_rs.meta.is_valid(whole) is draft(draft.META_SCHEMA).is_valid(whole)


@settings(max_examples=100, deadline=None)
@given(schemas, leaves.filter(lambda one: "$ref" not in one), values)
async def test_every_refusal_is_explained_and_every_other_call_runs(
    schema: Any, definition: Any, value: Any
) -> None:
    assume(json.dumps(definition).find("$ref") < 0)
    whole = {"type": "object", "properties": {"v": schema}, "$defs": {"d": definition}}
    tool = RegistryTool(schema=whole)
    refused: list[InvalidParams] = []
    try:
        await CallStand(tool).call(v=value)
    except InvalidParams as error:
        refused.append(error)
    for error in refused:
        assert error.violations
        assert all(one.message and len(one.message) <= 600 for one in error.violations)
    assert refused if not tool.calls else tool.calls in ([{"v": value}], [{}])

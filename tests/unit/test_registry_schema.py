"""Schemas: which are taken, and what they accept (PD-3)."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.fakes.registry_tools import CallStand, RegistryTool
from tool_registry.errors import InvalidParams, InvalidSchema
from tool_registry.schema import CompiledSchema, is_placeholder


def compiled(schema: Any) -> CompiledSchema:
    return CompiledSchema(json.dumps(schema, separators=(",", ":")))


def of(schema: Any, **more: Any) -> CompiledSchema:
    return compiled({"type": "object", "properties": {"v": schema}, **more})


def nested(levels: int) -> dict[str, Any]:
    """A schema so many levels deep."""
    schema: dict[str, Any] = {}
    for _ in range(levels - 1):
        schema = {"not": schema}
    return schema


# --- what is taken ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "draft",
    [
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-04/schema",
        "http://json-schema.org/draft-06/schema#",
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/schema",
        "https://json-schema.org/draft/2020-12/schema#",
    ],
)
def test_the_usual_drafts_are_taken_by_name(draft: str) -> None:
    schema = compiled({"$schema": draft, "type": "object", "properties": {"v": {"type": "integer"}}})
    assert schema.accepts({"v": 1})
    assert not schema.accepts({"v": "1"})


def test_each_draft_has_its_own_meaning() -> None:
    old = "http://json-schema.org/draft-04/schema#"
    rules = {"minimum": 3, "exclusiveMinimum": True}
    assert not compiled({"$schema": old, "properties": {"v": rules}}).accepts({"v": 3})
    with pytest.raises(InvalidSchema, match="/properties/v/exclusiveMinimum"):
        of(rules)


def test_without_a_draft_the_newest_is_meant() -> None:
    schema = of({"type": "array", "prefixItems": [{"type": "integer"}]})
    assert not schema.accepts({"v": ["x"]})


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"$schema": "https://example.com/x"}, "is not known; use draft 2020-12 or draft-07"),
        ({"$schema": []}, "is not known"),
        ({"$schema": {"a": 1}}, "is not known"),
        ({"$schema": None}, "is not known"),
        ({"$schema": "http://json-schema.org/draft-03/schema#"}, "is not known"),
        ({"type": "array"}, "must describe an object"),
        ({"type": ["array", "null"]}, "must describe an object"),
        ({"type": 7}, "must describe an object"),
        ({"properties": []}, "not a valid JSON Schema: at /properties"),
        ({"properties": {"a": {"pattern": "("}}}, "regex"),
        ({"properties": {"a": {"$ref": "#/$defs/x"}}}, "does not exist"),
        ({"properties": {"a": {"$ref": "https://example.com/s.json"}}}, "none is ever fetched"),
        ({"properties": {"a": {"$ref": "file:///etc/hostname"}}}, "none is ever fetched"),
        (
            {"$id": "https://example.com/s.json", "properties": {"a": {"$ref": "t.json"}}},
            "none is ever fetched",
        ),
        ({"properties": {"a": {"$dynamicRef": "https://example.com/s.json#x"}}}, "none is ever fetched"),
    ],
)
def test_a_schema_that_can_not_be_held_to_is_refused_with_the_reason(schema: Any, reason: str) -> None:
    """BR-086."""
    with pytest.raises(InvalidSchema, match=reason) as caught:
        compiled(schema)
    assert len(caught.value.message) < 700


@pytest.mark.parametrize("text", ["", "null", "true", "[]", '"x"', "{", '{"a":1}}', "7", "[" * 100_000])
def test_a_text_that_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchema):
        CompiledSchema(text)


def test_size_depth_and_number_of_values_are_bounded() -> None:
    compiled(nested(64))
    compiled({"required": [f"p{n}" for n in range(9_990)]})
    compiled({"description": "x" * 262_000})
    for schema, reason in (
        (nested(66), "more than 64 levels deep"),
        ({"required": [f"p{n}" for n in range(10_000)]}, "more than 10,000 values"),
        ({"description": "x" * 262_144}, "at most 262,144"),
        ({"description": "ő" * 131_072}, "at most 262,144"),
    ):
        with pytest.raises(InvalidSchema, match=reason):
            compiled(schema)


def test_the_largest_schemas_do_not_hold_the_event_loop() -> None:
    """The reference alone takes seconds for these."""
    started = time.thread_time()
    compiled({"properties": {f"p{n}": {"type": "string"} for n in range(4_900)}})
    with pytest.raises(InvalidSchema):
        compiled({"properties": {f"p{n}": {"type": "strin"} for n in range(4_900)}})
    old = "http://json-schema.org/draft-06/schema#"
    compiled({"$schema": old, "properties": {"v": {"enum": [{"n": n} for n in range(4_000)]}}})
    assert time.thread_time() - started < 2.0


def test_references_within_the_schema_and_to_the_drafts_are_resolved() -> None:
    """BR-055, BR-086: also recursive ones, anchors, and the bundled metaschemas."""
    schema = compiled(
        {
            "properties": {
                "tree": {"$ref": "#/$defs/Node"},
                "until": {"$ref": "#/properties/since"},
                "since": {"type": "string", "format": "date-time"},
                "named": {"$ref": "#here"},
                "meta": {"$ref": "https://json-schema.org/draft/2020-12/schema"},
            },
            "$defs": {
                "Node": {
                    "properties": {
                        "children": {"items": {"$ref": "#/$defs/Node"}},
                        "name": {"type": "string"},
                    },
                    "required": ["name"],
                },
                "here": {"$anchor": "here", "type": "integer"},
            },
        }
    )
    good = {"name": "a", "children": [{"name": "b", "children": [{"name": "c"}]}]}
    assert schema.accepts({"tree": good, "until": "2026-01-01T00:00:00Z", "named": 1, "meta": {}})
    assert not schema.accepts({"tree": {"name": "a", "children": [{}]}})
    assert not schema.accepts({"until": "tomorrow"})
    assert not schema.accepts({"named": "x"})
    assert not schema.accepts({"meta": {"type": 7}})


def test_a_schema_that_is_only_itself_ends() -> None:
    for schema in ({"$ref": "#"}, {"allOf": [{"$ref": "#"}]}, {"not": {"$ref": "#"}}):
        compiled(schema).accepts({})


def test_a_schema_that_branches_into_itself_is_decided_at_once() -> None:
    branch = {"properties": {"x": {"$ref": "#/$defs/a"}}}
    schema = compiled({"$ref": "#/$defs/a", "$defs": {"a": {"oneOf": [branch, branch]}}})
    instance: dict[str, Any] = {}
    for _ in range(60):
        instance = {"x": instance}
    started = time.thread_time()
    assert not schema.accepts(instance)
    assert time.thread_time() - started < 1.0


# --- what is accepted ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "fits", "does_not"),
    [
        (r"^\p{L}+$", "áé", "a1"),
        (r"^(?=.*\d)[a-z\d]+$", "a1", "aa"),
        (r"^(?!foo)", "bar", "foobar"),
        (r"(a)\1", "aa", "ab"),
        (r"^\d$", "5", "\u0665"),
    ],
)
def test_patterns_of_the_web_are_understood(pattern: str, fits: str, does_not: str) -> None:
    """Letters by class, look-around and back-references; digits are ASCII."""
    schema = of({"pattern": pattern})
    assert schema.accepts({"v": fits})
    assert not schema.accepts({"v": does_not})


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(?=(a+)+$)(a+)+b", r"^(a|a)*\1$"])
def test_a_catastrophic_pattern_is_answered_at_once(pattern: str) -> None:
    """BR-084: by the linear engine, or by the backtrack limit of the other one."""
    schema = of({"pattern": pattern}, patternProperties={"^(x|xx)*y$": {}})
    started = time.thread_time()
    assert not schema.accepts({"v": "a" * 5_000 + "!", "x" * 5_000: 1})
    assert schema.masked_violations({"v": "a" * 5_000 + "!"})
    assert time.thread_time() - started < 1.0


def test_patterns_that_backtrack_are_not_run_over_thousands_of_values() -> None:
    """Each stays under the limit of one: 14 letters took 1.2 ms, and a body may hold 800,000 of them."""
    schema = of({"items": {"pattern": r"^(?!(a|a)*\1b)"}})
    few, many = {"v": ["a" * 13] * 500}, {"v": ["a" * 13] * 100_000}
    assert schema.accepts(few)
    started = time.thread_time()
    assert not schema.accepts(many)
    (found,) = schema.masked_violations(many)
    assert (found.rule, "send less at once" in found.message) == ("pattern", True)
    assert time.thread_time() - started < 0.5
    plain = of({"items": {"pattern": "^a+$"}})
    assert plain.accepts(many)


def test_thousands_of_unique_objects_are_checked_at_once() -> None:
    schema = of({"uniqueItems": True})
    items = [{"n": n, "text": "x"} for n in range(5_000)]
    started = time.thread_time()
    assert schema.accepts({"v": items})
    assert not schema.accepts({"v": [*items, items[0]]})
    assert time.thread_time() - started < 1.0


@pytest.mark.parametrize(
    ("schema", "value", "verdict"),
    [
        ({"type": "integer"}, 1.0, True),
        ({"type": "integer"}, True, False),
        ({"type": "integer"}, 10**400, True),
        ({"type": "number", "multipleOf": 0.01}, 19.99, True),
        ({"enum": [1]}, 1.0, True),
        ({"enum": [1]}, True, False),
        ({"const": {"a": 1, "b": 2}}, {"b": 2, "a": 1}, True),
        ({"format": "email"}, "a@b.cd", True),
        ({"format": "email"}, "ab.cd", False),
        ({"format": "uri"}, "no uri", False),
        ({"format": "nobody-knows"}, "x", True),
        ({"unheard": "of"}, "x", True),
        ({"maxLength": 1}, "😀", True),
    ],
)
def test_verdicts_on_values_where_engines_differ(schema: Any, value: Any, verdict: bool) -> None:
    assert of(schema).accepts({"v": value}) is verdict


def test_what_json_can_not_carry_is_refused_or_harmless() -> None:
    """BR-082: the arguments' parser stops these; no engine may crash on them."""
    assert not of({"type": "number"}).accepts({"v": float("inf")})
    for value in (float("nan"), "\ud800", {"\ud800": 1}):
        of({"minimum": 0, "pattern": "x", "format": "date"}).accepts({"v": value})
        of({"minimum": 0, "pattern": "x", "format": "date"}).masked_violations({"v": value})
    odd = {"v": None, "\ud800": 1}
    assert of({"type": "integer"}).without_refused_nulls(odd) == (odd, ())


def test_the_engines_own_words_hold_no_value() -> None:
    schema = of({"type": "string", "maxLength": 3, "pattern": "^b", "format": "date", "enum": ["b"]})
    found = schema.masked_violations({"v": "hunter2-secret"})
    assert {one.rule for one in found} == {"maxLength", "pattern", "format", "enum"}
    assert "hunter2" not in str(found)
    assert all(one.pointer == "/v" for one in found)


def test_the_engines_own_words_are_bounded_in_number_and_time() -> None:
    schema = of({"items": {"type": "string"}})
    assert len(schema.masked_violations({"v": [1] * 1_000})) == 20
    started = time.thread_time()
    (first,) = schema.masked_violations({"v": [1] * 200_000})
    assert (first.pointer, first.rule) == ("/v/0", "type")
    assert time.thread_time() - started < 1.0


def test_a_null_is_dropped_beside_a_very_long_list_too() -> None:
    rules = compiled({"properties": {"v": {"type": "string"}, "l": {"items": {"type": "string"}}}})
    many = list("abc") * 20_000
    assert rules.without_refused_nulls({"l": many, "v": None}) == ({"l": many}, ("/v",))


# --- schemas that say little, and null ----------------------------------------------------------------

OPENAPI_NULL = {"type": "object", "properties": {"x": {"nullable": True, "type": "string"}}}


@pytest.mark.parametrize(
    ("schema", "accepted"),
    [
        ({"type": "object"}, {}),
        ({}, {}),
        ({"properties": {"q": {"type": "string"}}}, {"q": "x"}),
        (
            {
                "type": "object",
                "properties": {
                    "properties": {"type": "object"},
                    "required": {"type": "boolean"},
                    "type": {"type": "string"},
                },
            },
            {"properties": {}, "required": True, "type": "t"},
        ),
        ({"type": "object", "properties": {"x": {"type": ["string", "null"]}}}, {"x": None}),
        (OPENAPI_NULL, {"x": None}),
    ],
)
async def test_odd_but_usual_schemas_are_taken_and_run(schema: Any, accepted: dict[str, Any]) -> None:
    """BR-057: all six; null stays null where it is allowed."""
    tool = RegistryTool(schema=schema)
    await CallStand(tool).call(**accepted)
    assert tool.calls == [accepted]


@pytest.mark.parametrize(
    ("schema", "params", "verdict"),
    [
        (OPENAPI_NULL | {"required": ["x"]}, {"x": None}, True),
        (OPENAPI_NULL, {"x": 5}, False),
        ({"properties": {"o": OPENAPI_NULL}}, {"o": {"x": None}}, True),
        ({"properties": {"l": {"items": {"type": "integer", "nullable": True}}}}, {"l": [1, None]}, True),
        ({"properties": {"x": {"type": "string", "nullable": True, "enum": ["a"]}}}, {"x": None}, True),
        (
            {
                "properties": {"x": {"$ref": "#/$defs/X"}},
                "$defs": {"X": {"type": "string", "nullable": True}},
            },
            {"x": None},
            True,
        ),
        ({"properties": {"x": {"anyOf": [{"type": "string", "nullable": True}]}}}, {"x": None}, True),
        ({"properties": {"x": {"type": "string", "nullable": False}}}, {"x": 5}, False),
        (
            {"properties": {"nullable": {"type": "string"}, "type": {"type": "string"}}},
            {"nullable": True},
            False,
        ),
        (
            {"properties": {"x": {"const": {"nullable": True, "type": "string"}}}},
            {"x": {"nullable": True, "type": "string"}},
            True,
        ),
        ({"properties": {"const": {"type": "string", "nullable": True}}}, {"const": None}, True),
    ],
)
def test_nullable_is_the_null_type_wherever_a_schema_stands(
    schema: Any, params: dict[str, Any], verdict: bool
) -> None:
    """BR-057."""
    assert compiled(schema).accepts(params) is verdict


async def test_nullable_is_not_held_against_a_call_that_is_wrong_elsewhere() -> None:
    schema = {
        "properties": {"x": {"type": "string", "nullable": True}, "y": {"type": "integer"}},
        "required": ["x"],
    }
    with pytest.raises(InvalidParams) as caught:
        await CallStand(RegistryTool(schema=schema)).call(x=None, y="z")
    assert [one.pointer for one in caught.value.violations] == ["/y"]


SEARCH = {
    "type": "object",
    "properties": {
        "q": {"type": "string"},
        "lang": {"type": "string"},
        "limit": {"type": ["integer", "null"]},
        "parent": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "filt": {"type": "object", "properties": {"a": {"type": ["string", "null"]}}},
    },
    "required": ["q"],
}


async def test_only_nulls_that_the_schema_refuses_are_dropped() -> None:
    """BR-078: lang goes; limit, parent and filt.a stay null; a required null is refused by name."""
    tool = RegistryTool(schema=SEARCH)
    stand = CallStand(tool)
    await stand.call(q="x", lang=None, limit=None, parent=None, filt={"a": None})
    assert tool.calls == [{"q": "x", "limit": None, "parent": None, "filt": {"a": None}}]
    with pytest.raises(InvalidParams, match="'q' is required"):
        await stand.call(q=None)


@pytest.mark.parametrize(
    ("schema", "dropped"),
    [
        ({"type": "string"}, True),
        ({"enum": ["a", "b"]}, True),
        ({"const": "a"}, True),
        ({"$ref": "#/$defs/S"}, True),
        ({"allOf": [{"$ref": "#/$defs/S"}]}, True),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, True),
        ({"not": {"type": "null"}}, True),
        ({"type": "null"}, False),
        ({"enum": ["a", None]}, False),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, False),
        ({"type": "string", "nullable": True}, False),
        ({"description": "anything"}, False),
        ({}, False),
        (True, False),
    ],
)
def test_a_null_is_dropped_exactly_where_its_schema_refuses_it(schema: Any, dropped: bool) -> None:
    """BR-078: however the refusal is written."""
    rules = of(schema, **{"$defs": {"S": {"type": "string"}}})
    params = {"v": None, "w": None, "n": 1}
    kept, pointers = rules.without_refused_nulls(params)
    assert kept == ({"w": None, "n": 1} if dropped else params)
    assert pointers == (("/v",) if dropped else ())
    assert (kept is params) is not dropped


def test_a_null_under_a_forbidden_name_is_not_dropped() -> None:
    """BR-080: an unknown property is never lost silently."""
    rules = of({"type": "string"}, additionalProperties=False)
    params = {"unknown": None}
    assert rules.without_refused_nulls(params) == (params, ())


@pytest.mark.parametrize(
    "schema",
    [
        None,
        "",
        "null",
        {},
        {"type": "object"},
        {"type": "object", "properties": {}},
        {"type": "object", "properties": {}, "additionalProperties": True, "required": []},
        {"type": "object", "additionalProperties": {}, "description": "d", "title": "t"},
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "$comment": "to do", "$defs": {}},
        [],
        7,
    ],
)
def test_a_schema_that_says_nothing_is_a_placeholder(schema: Any) -> None:
    assert is_placeholder(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"q": {}}},
        {"type": "object", "additionalProperties": False},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"anyOf": [{"required": ["a"]}]},
        {"$ref": "#/$defs/A", "$defs": {"A": {"properties": {"q": {}}}}},
        {"minProperties": 1},
    ],
)
def test_a_schema_that_says_something_is_none(schema: Any) -> None:
    assert not is_placeholder(schema)

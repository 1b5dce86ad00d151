"""Schemas whose alternatives multiply are refused or explained elsewhere; others are not held up (PD-3)."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.fakes.registry_tools import CallStand, RegistryTool
from tool_registry.errors import InvalidParams, InvalidSchema
from tool_registry.schema import CompiledSchema
from tool_registry.schema_graph import Branching, measured

NODE = {"$ref": "#/$defs/n"}


def doubling(levels: int, word: str = "allOf", last: Any = None) -> dict[str, Any]:
    """Each definition names the next one twice."""
    definitions: dict[str, Any] = {
        f"L{n}": {word: [{"$ref": f"#/$defs/L{n + 1}"}, {"$ref": f"#/$defs/L{n + 1}"}]} for n in range(levels)
    }
    definitions[f"L{levels}"] = last or {"type": "string"}
    return {"type": "object", "properties": {"v": {"$ref": "#/$defs/L0"}}, "$defs": definitions}


def tree(branches: int) -> dict[str, Any]:
    """Every level may be any of so many kinds, each of which goes on inside."""
    kinds = [{"properties": {"c": NODE}, "required": [f"k{n}"]} for n in range(branches)]
    return {"type": "object", "properties": {"c": NODE}, "$defs": {"n": {"type": "object", "anyOf": kinds}}}


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"c": value}
    return value


@pytest.mark.parametrize("word", ["allOf", "anyOf", "oneOf"])
def test_alternatives_that_multiply_are_refused_at_once(word: str) -> None:
    """31 definitions would be 2,000,000,000 checks of one value, in the event loop."""
    started = time.thread_time()
    for schema in (
        doubling(31, word),
        doubling(31, word, last={"type": "object", "properties": {"z": {"$ref": "#/$defs/L0"}}}),
    ):
        with pytest.raises(InvalidSchema, match=r"multiply to more than 100,000 checks of one value; write"):
            CompiledSchema(json.dumps(schema))
    assert time.thread_time() - started < 1.0


def test_what_is_still_taken_is_decided_at_once() -> None:
    schema = CompiledSchema(json.dumps(doubling(14)))
    started = time.thread_time()
    assert schema.accepts({"v": "a"})
    assert time.thread_time() - started < 0.5


@pytest.mark.parametrize("order", [1, -1])
def test_a_very_long_chain_of_references_is_no_reason_to_crash(order: int) -> None:
    links = [(f"L{n}", {"$ref": f"#/$defs/L{n + 1}"}) for n in range(2_000)]
    definitions = dict([*links, ("L2000", {"type": "string"})][::order])
    schema = {"type": "object", "properties": {"v": {"$ref": "#/$defs/L0"}}, "$defs": definitions}
    checked = CompiledSchema(json.dumps(schema))
    assert checked.accepts({"v": "a"})
    assert not checked.accepts({"v": 1})


EMPTY: dict[str, Any] = {}
COUNTED: list[tuple[dict[str, Any], int, bool]] = [
    ({"type": "object"}, 1, False),
    ({"properties": {"a": {"anyOf": [EMPTY, EMPTY, {"not": EMPTY}]}}}, 5, False),
    (
        {"properties": {"a": {"$ref": "#/$defs/s"}, "b": {"$ref": "#/$defs/s"}}, "$defs": {"s": EMPTY}},
        2,
        False,
    ),
    ({"properties": {"a": {"$ref": "#"}}}, 2, True),
    (
        {
            "$defs": {
                "a": {"properties": {"x": {"$ref": "#/$defs/b"}}},
                "b": {"items": {"$ref": "#/$defs/a"}},
            }
        },
        2,
        True,
    ),
    ({"$defs": {"a": {"$anchor": "t", "items": {"$ref": "#t"}}}}, 2, True),
    ({"properties": {"a": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}}, 1, False),
    ({"properties": {"a": {"$ref": "#/nowhere"}}}, 1, False),
    (tree(2), 4, True),
]


@pytest.mark.parametrize(("schema", "looks", "recursive"), COUNTED)
def test_looks_and_recursion_are_counted(schema: Any, looks: int, recursive: bool) -> None:
    assert measured(schema) == Branching(looks, recursive=recursive)


@pytest.mark.parametrize("depth", [3, 20, 150])
async def test_arguments_deep_in_a_recursive_schema_are_refused_at_once(depth: int) -> None:
    """Listing all errors of 18 levels took the deciding engine 30 s."""
    for branches in (2, 9):
        stand = CallStand(RegistryTool(schema=tree(branches)))
        started = time.thread_time()
        with pytest.raises(InvalidParams) as caught:
            await stand.call(**nested(depth))
        assert time.thread_time() - started < 1.0
        assert caught.value.violations
        with pytest.raises(InvalidParams):
            await stand.call(**nested(depth), lang=None)


async def test_a_plain_tree_is_explained_however_deep() -> None:
    """BR-055: the path and the missing name are told."""
    node = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": NODE}},
        "required": ["name"],
    }
    schema = {"type": "object", "properties": {"root": NODE}, "required": ["root"], "$defs": {"n": node}}
    value: dict[str, Any] = {}
    for _ in range(3):
        value = {"name": "a", "children": [value]}
    with pytest.raises(InvalidParams) as caught:
        await CallStand(RegistryTool(schema=schema)).call(root=value)
    (found,) = caught.value.violations
    assert (found.pointer, found.rule) == ("/root/children/0/children/0/children/0", "required")
    assert "'name'" in found.message

"""Schemas that want to fetch something, or to keep the process busy."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.fakes.registry_tools import CallStand, RegistryTool
from tool_registry.errors import InvalidParams
from tool_registry.explain import violations
from tool_registry.registry import Offer, ToolRegistry
from worker.explainer import SubprocessExplainer


async def longest_pause_s(work: asyncio.Task[Any]) -> float:
    """How long the event loop was held while something ran."""
    loop = asyncio.get_running_loop()
    longest, before = 0.0, loop.time()
    while not work.done():
        await asyncio.sleep(0.005)
        longest, before = max(longest, loop.time() - before), loop.time()
    return longest


async def test_no_reference_of_a_schema_is_ever_fetched() -> None:
    """BR-086: 0 requests at a real listener; the neighbours of the refused tool stay."""
    connections = 0

    def count(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        writer.close()

    server = await asyncio.start_server(count, "127.0.0.1", 0)
    base = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        schemas: list[dict[str, Any]] = [
            {"properties": {"a": {"$ref": f"{base}/x.json"}}},
            {"properties": {"a": {"$dynamicRef": f"{base}/x.json#y"}}},
            {"$id": f"{base}/root.json", "properties": {"a": {"$ref": "x.json"}}},
            {"$schema": f"{base}/meta.json", "type": "object"},
            {"properties": {"a": {"$schema": f"{base}/meta.json", "$id": "urn:x:y"}}},
            {"properties": {"b": {"$ref": "file:///etc/hostname"}}},
        ]
        registry = ToolRegistry()
        offers = [Offer(RegistryTool(f"tool_{n}", schema=schema)) for n, schema in enumerate(schemas)]
        replaced = await asyncio.to_thread(registry.replace, "server", [*offers, Offer(RegistryTool("fine"))])
        assert "fine" in replaced.registered
        assert {one.proposed for one in replaced.refused} >= {
            "tool_0",
            "tool_1",
            "tool_2",
            "tool_3",
            "tool_5",
        }
        for schema in schemas:
            await asyncio.to_thread(violations, {**schema, "$schema": None}, {"a": 1, "b": 1})
            await SubprocessExplainer(limit_s=20).explain(json.dumps(schema), '{"a": 1, "b": 1}')
    assert connections == 0


async def test_a_reference_to_a_bundled_draft_is_resolved() -> None:
    """BR-086."""
    tool = RegistryTool(
        schema={"properties": {"c": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}}
    )
    stand = CallStand(tool)
    await stand.call(c={})
    with pytest.raises(InvalidParams) as caught:
        await stand.call(c={"type": 7})
    assert caught.value.violations[0].pointer == "/c/type"


@pytest.mark.parametrize("limit_s", [0.5])
async def test_a_catastrophic_pattern_is_refused_soon_and_the_loop_stays_responsive(limit_s: float) -> None:
    """BR-084: the linear engine decides; the explanation runs in a process that is ended."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"s": {"type": "string", "pattern": "^(a+)+$"}},
        "patternProperties": {"^(x|xx)*y$": {}},
    }
    stand = CallStand(RegistryTool(schema=schema), explainer=SubprocessExplainer(limit_s=limit_s))
    arguments: dict[str, Any] = {"s": "a" * 36 + "!", "x" * 36: 1}
    call = asyncio.ensure_future(stand.call(**arguments))
    pause_s = await longest_pause_s(call)
    error = call.exception()
    assert isinstance(error, InvalidParams)
    assert [(one.pointer, one.rule) for one in error.violations] == [("/s", "pattern")]
    assert pause_s < 0.5
    assert stand.audit[0].rules == ("pattern",)


async def test_with_a_process_to_ask_a_pattern_is_explained_in_full() -> None:
    schema = {
        "type": "object",
        "properties": {"s": {"pattern": "^b+$"}, "n": {"type": "integer"}},
        "additionalProperties": False,
    }
    stand = CallStand(RegistryTool(schema=schema), explainer=SubprocessExplainer(limit_s=30))
    with pytest.raises(InvalidParams) as caught:
        await stand.call(s="a", n="5", m=1)
    assert {one.pointer: one.message for one in caught.value.violations} == {
        "/s": "must match the pattern ^b+$",
        "/n": "must be integer, not string; send the value itself, without quotes",
        "/m": "unknown property 'm'",
    }


async def test_deep_arguments_in_a_recursive_schema_hold_nothing_up() -> None:
    """Every level may be either of two kinds: the list of all errors doubles with each."""
    kinds = [{"properties": {"c": {"$ref": "#/$defs/n"}}, "required": [name]} for name in "xy"]
    schema = {"properties": {"c": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "object", "anyOf": kinds}}}
    stand = CallStand(RegistryTool(schema=schema), explainer=SubprocessExplainer(limit_s=0.5))
    deep: dict[str, Any] = {}
    for _ in range(150):
        deep = {"c": deep}
    call = asyncio.ensure_future(stand.call(**deep))
    assert await longest_pause_s(call) < 0.5
    error = call.exception()
    assert isinstance(error, InvalidParams)
    assert error.violations


async def test_thousands_of_unique_items_hold_nothing_up() -> None:
    """The reference compares each with each: it is not asked in the event loop."""
    schema = {"properties": {"v": {"type": "array", "uniqueItems": True, "items": {"type": "object"}}}}
    stand = CallStand(RegistryTool(schema=schema), explainer=SubprocessExplainer(limit_s=0.5))
    items = [{"n": n, "m": {"k": n}} for n in range(5_000)]
    await stand.call(v=items)
    call = asyncio.ensure_future(stand.call(v=[*items, items[7]]))
    assert await longest_pause_s(call) < 0.5
    error = call.exception()
    assert isinstance(error, InvalidParams)
    assert [one.rule for one in error.violations] == ["uniqueItems"]

"""A component of another world: each function that JSON can speak to becomes a tool (BR-096)."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.support.wasm.guests import build_core
from tests.support.wasm.workshop import Workshop, context, workshop
from tool_registry.errors import InvalidParams, ToolFailed
from tool_registry.execution import Surroundings, ToolExecutor
from tool_registry.output import ToolOutput
from tool_registry.registry import Offer, ToolRegistry
from tool_registry.tool import Approval
from tool_registry.visibility import ToolState
from wasm_tools.loading import load_wasm_tool

SHAPES = "portside:probe/shapes"
# Each answers what it was given, as far as its types allow.
KIT = f"""(module
  (memory (export "memory") 80)
  (global $free (mut i32) (i32.const 65536))
  (data (i32.const 1024) "odd number")
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $free) (i32.const 15)) (i32.const -16)))
    (global.set $free (i32.add (local.get $at) (local.get 3)))
    (local.get $at))
  (func $pair (param i32 i32) (result i32)
    (i32.store (i32.const 16) (local.get 0)) (i32.store (i32.const 20) (local.get 1)) (i32.const 16))
  (func (export "greet") (param i32 i32) (result i32) (call $pair (local.get 0) (local.get 1)))
  (func (export "half") (param $n i32) (param $has i32) (param $most i32) (result i32)
    (if (i32.and (local.get $n) (i32.const 1))
      (then (i32.store8 (i32.const 32) (i32.const 1))
        (i32.store (i32.const 40) (i32.const 1024)) (i32.store (i32.const 44) (i32.const 10)))
      (else (i32.store8 (i32.const 32) (i32.const 0))
        (i64.store (i32.const 40) (i64.extend_i32_s (i32.div_s (local.get $n) (i32.const 2))))
        (if (local.get $has) (then (i64.store (i32.const 40) (i64.extend_i32_u (local.get $most)))))))
    (i32.const 32))
  (func (export "ping"))
  (func (export "many") (result i32) (call $pair (i32.const 131072) (i32.const 1000000)))
  (func (export "odd") (param i32 i32 i32))
  (func (export "init") unreachable)
  (func (export "{SHAPES}#area") (param $tag i32) (param $size f64) (param $unit i32) (param $opts i32) (result f64)
    (f64.add (f64.mul (local.get $size) (f64.convert_i32_s (i32.add (local.get $tag) (i32.const 1))))
      (f64.convert_i32_s (i32.add (i32.mul (local.get $unit) (i32.const 100)) (i32.mul (local.get $opts) (i32.const 1000))))))
  (func (export "{SHAPES}#hull") (param i32 i32) (result i32) (call $pair (local.get 0) (local.get 1)))
  (func (export "{SHAPES}#blob") (param i32 i32 i32) (result i32)
    (i32.store8 (i32.const 64) (i32.eq (local.get 2) (i32.const 233)))
    (i32.store (i32.const 68) (local.get 0)) (i32.store (i32.const 72) (local.get 1)) (i32.const 64))
)"""


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncGenerator[Workshop]:
    async with workshop(tmp_path) as made:
        yield made


async def kit(shop: Workshop, sidecar: dict[str, Any] | None = None) -> Offer:
    path = build_core(KIT, "kit", shop.directory / "kit.wasm")
    if sidecar is not None:
        (shop.directory / "kit.capabilities.json").write_text(json.dumps({"version": 1, **sidecar}))
    return await load_wasm_tool(path, shop.runtime)


class Kit:
    """The tools of the kit, called as a job would."""

    def __init__(self, offer: Offer, shop: Workshop) -> None:
        assert offer.state is ToolState.ACTIVE, offer.reason
        self.registry = ToolRegistry()
        self.replaced = self.registry.replace("kit.wasm", [offer])
        self._executor = ToolExecutor(self.registry, Surroundings(shop.runtime.clock))

    def schema(self, name: str) -> dict[str, Any]:
        entry = self.registry.get(name)
        assert entry is not None
        return entry.definition.parameters

    async def call(self, name: str, /, **params: Any) -> ToolOutput:
        return await self._executor.execute(name, params, context())


async def test_each_function_is_a_tool_under_the_files_name_and_what_json_cannot_say_is_not(
    shop: Workshop,
) -> None:
    tools = Kit(await kit(shop), shop)
    assert tools.replaced.refused == ()
    assert tools.replaced.registered == (
        "kit_greet",
        "kit_half",
        "kit_many",
        "kit_ping",
        "kit_shapes_area",
        "kit_shapes_blob",
        "kit_shapes_hull",
    )
    area = tools.registry.get("kit_shapes_area")
    assert area is not None
    assert (area.state, area.traits.original_name) == (ToolState.ACTIVE, f"{SHAPES}#area")
    assert tools.registry.remove_owner("kit.wasm") == tools.replaced.registered


async def test_schemas_are_derived_from_the_types(shop: Workshop) -> None:
    tools = Kit(await kit(shop), shop)
    closed = {"additionalProperties": False}
    assert tools.schema("kit_half") == {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
            "most": {"type": "integer", "minimum": 0, "maximum": 2**32 - 1},
        },
        "required": ["n"],
        **closed,
    }
    assert tools.schema("kit_ping") == {"type": "object", "properties": {}, "required": [], **closed}
    area = tools.schema("kit_shapes_area")["properties"]
    assert area["s"]["anyOf"][2] == {
        "type": "object",
        "properties": {"nothing": {"type": "boolean", "const": True}},
        "required": ["nothing"],
        **closed,
    }
    assert area["u"] == {"type": "string", "enum": ["mm", "cm"]}
    assert area["o"]["items"] == {"type": "string", "enum": ["fast", "precise"]}
    point = tools.schema("kit_shapes_hull")["properties"]["points"]["items"]
    assert (sorted(point["properties"]), point["required"]) == (["label", "x"], ["x"])


@pytest.mark.parametrize(
    ("name", "params", "expected"),
    [
        ("greet", {"name": "h\u00e9"}, "h\u00e9"),
        ("half", {"n": -8}, "-4"),
        ("half", {"n": 8, "most": 2**32 - 1}, "4294967295"),
        ("ping", {}, "done"),
        ("shapes_area", {"s": {"circle": 2}, "u": "mm", "o": []}, "2.0"),
        ("shapes_area", {"s": {"square": 2.5}, "u": "cm", "o": ["precise", "fast"]}, "3105.0"),
        ("shapes_area", {"s": {"nothing": True}, "u": "mm", "o": ["precise"]}, "2000.0"),
        (
            "shapes_hull",
            {"points": [{"x": 1, "label": "a"}, {"x": -0.5}]},
            '[{"x":1.0,"label":"a"},{"x":-0.5,"label":null}]',
        ),
        ("shapes_hull", {"points": []}, "[]"),
        ("shapes_blob", {"data": "AP8=", "c": "\u00e9"}, '[true,"AP8="]'),
    ],
)
async def test_values_go_there_and_back(
    shop: Workshop, name: str, params: dict[str, Any], expected: str
) -> None:
    output = await Kit(await kit(shop), shop).call(f"kit_{name}", **params)
    assert (output.result, output.is_error) == (expected, False)


async def test_the_error_side_of_a_result_is_the_guests_own_error(shop: Workshop) -> None:
    output = await Kit(await kit(shop), shop).call("kit_half", n=3)
    assert (output.result, output.is_error) == ("odd number", True)


async def test_arguments_out_of_a_types_range_never_reach_the_guest(shop: Workshop) -> None:
    """The binding would wrap them silently."""
    tools = Kit(await kit(shop), shop)
    for params in ({"n": 2**31}, {"n": 1.5}, {"n": "1"}, {"n": True}, {"n": 0, "most": -1}, {}):
        with pytest.raises(InvalidParams):
            await tools.call("kit_half", **params)
    for bad in ("no base64!", "AA="):
        output = await tools.call("kit_shapes_blob", data=bad, c="x")
        assert output.is_error
        assert "base64" in output.result


async def test_an_answer_of_a_million_values_is_a_limit_and_quick(shop: Workshop) -> None:
    """BR-088: turned into Python's values, it would hold up every thread."""
    with pytest.raises(ToolFailed, match="50,000 values") as caught:
        await Kit(await kit(shop), shop).call("kit_many")
    assert caught.value.cause == "wasm_limit"


async def test_the_sidecar_describes_functions_and_holds_for_all(shop: Workshop) -> None:
    said = {"greet": {"description": "Greets."}, f"{SHAPES}#area": {"description": "An area."}}
    tools = Kit(await kit(shop, {"exports": said, "approval": "always"}), shop)
    entries = {entry.name: entry for entry in tools.registry.entries()}
    assert entries["kit_greet"].definition.description == "Greets."
    assert entries["kit_shapes_area"].definition.description == "An area."
    assert entries["kit_ping"].definition.description == "ping of the component kit."
    assert {entry.traits.approval for entry in entries.values()} == {Approval.ALWAYS}


@pytest.mark.parametrize(
    ("sidecar", "said"),
    [
        ({"exports": {"gret": {"description": "x"}}}, "exports.gret: the component has"),
        ({"description": "x"}, "describe functions in 'exports'"),
        ({"schema": {}}, "describe functions in 'exports'"),
    ],
)
async def test_a_sidecar_that_speaks_of_something_else_is_an_error(
    shop: Workshop, sidecar: dict[str, Any], said: str
) -> None:
    offer = await kit(shop, sidecar)
    assert offer.state is ToolState.FAILED_TO_LOAD
    assert said in offer.reason


async def test_a_component_without_any_such_function_is_refused_with_the_reason(shop: Workshop) -> None:
    core = '(module (memory (export "memory") 1) (func (export "odd") (param i32 i32 i32)))'
    offer = await load_wasm_tool(build_core(core, "only-odd", shop.directory / "odd.wasm"), shop.runtime)
    assert offer.state is ToolState.FAILED_TO_LOAD
    assert "it exports odd has an option of an option; expected" in offer.reason

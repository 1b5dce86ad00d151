"""The guests that come with the project do what they say (DC-2)."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.support.wasm.guests import CALC, REPOSITORY, WORLD
from tests.support.wasm.workshop import Workshop, context, workshop
from tool_registry.schema import CompiledSchema
from tool_registry.tool import Tool
from tool_registry.visibility import ToolState
from wasm_tools.loading import load_wasm_tool

GUESTS = REPOSITORY / "wasm_tools" / "guests"
BUILT = REPOSITORY / "build" / "guests"

SUMS: list[tuple[dict[str, Any], str]] = [
    ({"expression": "0.1 + 0.2"}, '{"result":"0.3","exact":true}'),
    ({"expression": "1.10 * 1.10"}, '{"result":"1.21","exact":true}'),
    ({"expression": "2 ^ 3 ^ 2 - -1"}, '{"result":"513","exact":true}'),
    ({"expression": "-2^2"}, '{"result":"-4","exact":true}'),
    ({"expression": "2^-3"}, '{"result":"0.125","exact":true}'),
    ({"expression": "-7 % 3"}, '{"result":"-1","exact":true}'),
    ({"expression": "7.5 % 2"}, '{"result":"1.5","exact":true}'),
    ({"expression": "(1/3)*3"}, '{"result":"0.99999999999999999999","exact":false}'),
    ({"expression": "1/8", "scale": 2}, '{"result":"0.12","exact":false}'),
    ({"expression": "1/8", "scale": 2, "rounding": "half_up"}, '{"result":"0.13","exact":false}'),
    ({"expression": "2/3", "scale": 2, "rounding": "down"}, '{"result":"0.66","exact":false}'),
    ({"expression": "-2.5", "scale": 0}, '{"result":"-2","exact":false}'),
    ({"expression": "0.00125/1", "scale": 4}, '{"result":"0.0012","exact":false}'),
    ({"expression": "0 - 0.0"}, '{"result":"0","exact":true}'),
    ({"expression": "1_000\n*\t3"}, '{"result":"3000","exact":true}'),
    ({"expression": "3 \u00d7 4"}, "this does not belong here (column 3 of the expression)"),
    ({"expression": "1/(2-2)"}, "division by zero (column 2 of the expression)"),
    ({"expression": "(1+2"}, "this '(' is never closed (column 1 of the expression)"),
    ({"expression": "1+"}, "the expression ends where a number was expected (column 3 of the expression)"),
    ({"expression": "2^0.5"}, "an exponent has to be a whole number (column 2 of the expression)"),
    ({"expression": "2^100001"}, "an exponent is over 100000 (column 2 of the expression)"),
    ({"expression": "9^9999"}, "a number gets more than 2000 digits; use a smaller exponent or fewer digits"),
    ({"expression": "(" * 200}, "more than 100 nested parentheses or signs (column 101 of the expression)"),
]
DOCUMENT = json.dumps(
    {"items": [{"name": "a", "price": 1.5}, {"name": "b/c", "price": 2}], "o d": {"x~y": None}}
)
QUERIES: list[tuple[str, str]] = [
    ("/items/1/name", '"b/c"'),
    ("/o d/x~0y", "null"),
    (
        "$.items[*].name",
        '[{"pointer": "/items/0/name", "value": "a"}, {"pointer": "/items/1/name", "value": "b/c"}]',
    ),
    ("$..price", '[{"pointer": "/items/0/price", "value": 1.5}, {"pointer": "/items/1/price", "value": 2}]'),
    ("$['o d'].*", '[{"pointer": "/o d/x~0y", "value": null}]'),
    ("$.items[-1].price", '[{"pointer": "/items/1/price", "value": 2}]'),
    ("$.absent", "[]"),
    ("/items/2", "nothing at /items/2; /items is an array of 2"),
    ("items", "a query starts with '/' (pointer) or '$' (path), or is empty for the whole document"),
    ("$.items[", "can't read the path at column 8: '['"),
]


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncGenerator[Workshop]:
    async with workshop(tmp_path) as made:
        yield made


async def active(shop: Workshop, path: Path) -> Tool:
    offer = await load_wasm_tool(path, shop.runtime)
    assert offer.state is ToolState.ACTIVE, offer.reason
    return offer.tool


def built(name: str, out: Path) -> Path:
    subprocess.run([GUESTS / name / "build.sh", out], check=True, capture_output=True)
    return out


async def test_calc_computes_exactly_and_says_what_is_wrong(shop: Workshop) -> None:
    calc = await active(shop, CALC)
    for params, expected in SUMS:
        output = await calc.execute(params, context())
        assert output.result == expected, params
        assert output.is_error == ("exact" not in expected)


async def test_calcs_schema_refuses_bad_first_calls(shop: Workshop) -> None:
    schema = CompiledSchema((await active(shop, CALC)).definition.parameters_json)
    assert all(schema.accepts(params) for params, _ in SUMS)
    refused: list[dict[str, Any]] = [
        {},
        {"expression": 5},
        {"expression": ""},
        {"expression": "1", "scale": -1},
        {"expression": "1", "scale": 1.5},
        {"expression": "1", "rounding": "up"},
        {"expression": "1", "precision": 3},
    ]
    assert not any(schema.accepts(params) for params in refused)


async def test_calc_built_from_its_source_is_the_committed_one(shop: Workshop) -> None:
    """The committed binary comes from the committed source."""
    missing = [tool for tool in ("clang", "wasm-ld") if shutil.which(tool) is None]
    if missing:
        message = f"{' and '.join(missing)} not found (Debian: clang lld)"
        assert os.environ.get("CI") != "true", message
        pytest.skip(message)
    committed = await active(shop, CALC)
    rebuilt = await active(shop, built("calc", shop.directory / "calc.wasm"))
    assert rebuilt.definition == committed.definition
    for params, _ in SUMS:
        assert await rebuilt.execute(params, context()) == await committed.execute(params, context()), params


@pytest.mark.timeout(300)
async def test_json_query_a_guest_in_python_answers_pointers_and_paths(shop: Workshop) -> None:
    """A component of another language, with a whole interpreter inside and WASI beneath."""
    sources = (GUESTS / "json_query" / "app.py", GUESTS / "json_query" / "build.sh", WORLD)
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    kept = BUILT / digest / "json_query.wasm"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        built("json_query", kept.with_suffix(".new")).replace(kept)
    query = await active(shop, kept)
    schema = CompiledSchema(query.definition.parameters_json)
    for text, expected in QUERIES:
        params = {"document": DOCUMENT, "query": text}
        assert schema.accepts(params)
        assert (await query.execute(params, context())).result == expected, text
    output = await query.execute({"document": "{", "query": ""}, context())
    assert output.is_error
    assert "the document is not JSON" in output.result
    limited = await query.execute({"document": "[1,2,3]", "query": "$[*]", "limit": 1}, context())
    assert limited.result == '[{"pointer": "/0", "value": 1}]'

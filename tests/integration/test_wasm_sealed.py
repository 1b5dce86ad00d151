"""A guest sees nothing of its host: no files, environment, arguments or input."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.support.wasm.guests import Source
from tests.support.wasm.workshop import Workshop, context, workshop

ENVIRONMENT = '(import "wasi:cli/environment@0.2.0" "{}" (func $list (param i32)))'
PREOPENS = '(import "wasi:filesystem/preopens@0.2.0" "get-directories" (func $list (param i32)))'
LENGTH = "(call $list (i32.const 64)) (call $digit (i32.load (i32.const 68)))"
STDIN = """(import "wasi:cli/stdin@0.2.0" "get-stdin" (func $stdin (result i32)))
  (import "wasi:io/streams@0.2.0" "[method]input-stream.blocking-read" (func $read (param i32 i64 i32)))"""
READ = """(call $read (call $stdin) (i64.const 100) (i32.const 64))
  (call $digit (i32.add (i32.mul (i32.const 2) (i32.load8_u (i32.const 64))) (i32.load8_u (i32.const 68))))"""


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncGenerator[Workshop]:
    async with workshop(tmp_path) as made:
        yield made


@pytest.mark.parametrize(
    "imports",
    [ENVIRONMENT.format("get-environment"), ENVIRONMENT.format("get-arguments"), PREOPENS],
    ids=["environment", "arguments", "directories"],
)
async def test_environment_arguments_and_directories_are_empty(
    shop: Workshop, imports: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BR-094: deny by default; nothing of the host's is inherited."""
    monkeypatch.setenv("PORTSIDE_TEST_SECRET", "s")
    tool = await shop.tool(Source(world="looks-around", imports=imports, execute=LENGTH))
    assert (await tool.execute({}, context())).result == "0"


async def test_input_is_at_its_end(shop: Workshop) -> None:
    """BR-094: reading stdin answers `closed` at once, whatever the host's own stdin is."""
    tool = await shop.tool(Source(world="looks-around", imports=STDIN, execute=READ))
    error, closed = 1, 1
    assert (await tool.execute({}, context())).result == str(2 * error + closed)

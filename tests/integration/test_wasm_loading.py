"""From a file to an offer: what becomes a tool, and what is said of everything else."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import NoReturn

import pytest

from tests.support.wasm.guests import CALC, TEXT_SCHEMA, Source, build, core_binary
from tests.support.wasm.workshop import RealClock, Workshop, context, workshop
from tool_registry.registry import ToolRegistry
from tool_registry.tool import Approval, ToolSource
from tool_registry.visibility import ToolState
from wasm_tools.loading import FAULT, load_directory, load_wasm_tool
from wasm_tools.runtime import WasmRuntime

WORLD = "portside:tool/sandboxed-tool@1.0.0"


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncGenerator[Workshop]:
    async with workshop(tmp_path) as made:
        yield made


async def refusal(shop: Workshop, path: Path) -> str:
    offer = await load_wasm_tool(path, shop.runtime)
    assert offer.state is ToolState.FAILED_TO_LOAD, offer
    assert offer.reason.startswith(f"{path.name}: ")
    assert "\n" not in offer.reason
    return offer.reason


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", "the file is empty"),
        (b"\0asm", "cut short"),
        (b"\0asm\x01\0\0\0", "a core module; wrap it with 'wasm-tools component embed'"),
        (b"\0asm\x01\0\0\0...extism:host/env...", "an Extism plug-in"),
        (b"\0asm\x0c\0\x01\0", "of an unknown version"),
        (b"\x7fELF\x02\x01\x01", "a native program (ELF)"),
        (b"(module)", "'wasm-tools parse'"),
        (b"\n  (component)", "'wasm-tools parse'"),
        (b"GIF89a", "not WebAssembly"),
    ],
)
async def test_a_file_of_another_kind_is_recognised(shop: Workshop, data: bytes, found: str) -> None:
    """BR-096: one sentence says what was found, what was expected, and the fix."""
    path = shop.directory / "thing.wasm"
    path.write_bytes(data)
    reason = await refusal(shop, path)
    assert found in reason
    assert f"expected a WebAssembly component of the world {WORLD}" in reason


async def test_a_component_header_without_content_exports_nothing(shop: Workshop) -> None:
    """BR-096: valid, empty, and no tool."""
    path = shop.directory / "empty.wasm"
    path.write_bytes(b"\0asm\x0d\0\x01\0")
    reason = await refusal(shop, path)
    assert "it exports nothing; expected portside:tool/tool@1.0.0" in reason
    assert f"build it for the world {WORLD}" in reason


async def test_a_component_cut_short_is_refused(shop: Workshop) -> None:
    """BR-096: half a component."""
    path = shop.directory / "half.wasm"
    path.write_bytes(CALC.read_bytes()[:3_000])
    assert "it is no valid component" in await refusal(shop, path)


async def test_a_file_of_100_mb_is_refused_unread(shop: Workshop) -> None:
    """BR-096: the size is checked before anything else."""
    path = shop.directory / "huge.wasm"
    with path.open("wb") as file:
        file.write(b"\0asm\x0d\0\x01\0")
        os.truncate(file.fileno(), 100 << 20)
    assert "100 MiB, over the limit of 64 MiB" in await refusal(shop, path)


async def test_a_pipe_or_a_missing_file_is_refused_without_waiting(shop: Workshop) -> None:
    """BR-096: only regular files are read."""
    pipe = shop.directory / "pipe.wasm"
    os.mkfifo(pipe)
    assert "not a regular file" in await refusal(shop, pipe)
    assert "No such file" in await refusal(shop, shop.directory / "absent.wasm")


async def test_an_unknown_import_is_refused_by_name(shop: Workshop) -> None:
    """BR-096: an import that nobody offers shows at registration, not at the first call."""
    evil = Source(
        world="asks-the-unknown", imports='(import "portside:probe/evil" "steal" (func (param i32)))'
    )
    assert "imports 'portside:probe/evil', which is not offered" in (
        await refusal(shop, build(evil, shop.directory / "evil.wasm"))
    )


@pytest.mark.parametrize(
    ("version", "fix"),
    [
        ("2.0.0", "update Portside"),
        ("1.0.1", "update Portside"),
        ("0.9.0", "look for a newer build of the tool"),
    ],
)
async def test_a_guest_of_another_version_of_our_package_is_told_both(
    shop: Workshop, version: str, fix: str
) -> None:
    """BR-096: its functions would else become tools of another world, called execute and schema."""
    out = build(Source(), shop.directory / "other.wasm")
    out.write_bytes(
        out.read_bytes().replace(b"portside:tool/tool@1.0.0", f"portside:tool/tool@{version}".encode())
    )
    reason = await refusal(shop, out)
    assert (
        f"it is built for portside:tool/tool@{version}, and this Portside offers portside:tool@1.0.0"
        in reason
    )
    assert reason.endswith(f"or {fix}")


async def test_wasi_http_is_not_offered(shop: Workshop) -> None:
    http = Source(world="wants-http", imports='(import "wasi:http/outgoing-handler@0.2.0" "handle" (func))')
    assert "wasi:http/outgoing-handler@0.2.0" in (
        await refusal(shop, build(http, shop.directory / "http.wasm"))
    )


async def test_a_host_function_of_another_signature_is_refused(shop: Workshop) -> None:
    """BR-096: a wrong signature is found before the first call."""
    shorter = Source(
        imports='(import "portside:tool/host@1.0.0" "log" (func (param i32 i32)))',
        edit=("log: func(level: log-level, message: string)", "log: func(message: string)"),
    )
    reason = await refusal(shop, build(shorter, shop.directory / "wrong.wasm"))
    assert "it imports 'log' as func(message:string)" in reason
    later = Source(
        imports='(import "portside:tool/host@1.0.0" "shout" (func (param i32 i32)))',
        edit=("log: func(", "shout: func(message: string); log: func("),
    )
    reason = await refusal(shop, build(later, shop.directory / "later.wasm"))
    assert "it imports 'shout' of portside:tool/host@1.0.0, which has no such function" in reason


async def test_an_export_of_another_signature_is_refused(shop: Workshop) -> None:
    """BR-096: a guest whose description() answers something else."""
    other = Source(edit=("description: func() -> string", "description: func() -> list<u8>"))
    reason = await refusal(shop, build(other, shop.directory / "other.wasm"))
    assert "its 'description' is func()->list<u8>" in reason


async def test_shared_memory_and_atomic_waits_do_not_compile(shop: Workshop) -> None:
    """BR-088: an atomic wait would hold its thread beyond any deadline."""
    wait = "(memory.atomic.wait32 (i32.const 0) (i32.const 0) (i64.const -1))"
    assert "threads" in await refusal(shop, build(Source(execute=wait), shop.directory / "waits.wasm"))
    shared = "(component (core module (memory 1 2 shared)))"
    assert "threads" in await refusal(shop, core_binary(shared, shop.directory / "shared.wasm"))


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("not json", "does not answer JSON"),
        ('{"type":"string"}', "must describe an object"),
        ("[1]", "is no JSON Schema but list"),
        ('"text"', "is no JSON Schema but str"),
        ("true", "is no JSON Schema but bool"),
        ("5", "is no JSON Schema but int"),
        ('{"type":"object","properties":{"a":{"type":"nonsense"}}}', "can't be used"),
        ('{"type":"object","properties":{"a":{"$ref":"https://example.test/s.json"}}}', "can't be used"),
        ("[" * 20_000, "does not answer JSON"),
    ],
)
async def test_a_schema_that_is_none_is_refused(shop: Workshop, schema: str, said: str) -> None:
    """BR-096: what schema() answers is held to before the tool is offered."""
    offer = await shop.offer(Source(schema=schema))
    assert offer.state is ToolState.FAILED_TO_LOAD
    assert said in offer.reason


@pytest.mark.parametrize(
    "schema",
    ["", " ", "null", '""', '"null"', "{}", '{"type":"object"}', '{"type":"object","properties":{}}'],
)
async def test_a_placeholder_schema_is_never_advertised(shop: Workshop, schema: str) -> None:
    """BR-096: the tool waits for a schema, and says where to give one."""
    offer = await shop.offer(Source(schema=schema))
    assert offer.state is ToolState.NEEDS_SCHEMA
    assert "guest.capabilities.json" in offer.reason
    registry = ToolRegistry()
    registry.replace("guest.wasm", [offer])
    entry = registry.get("guest")
    assert entry is not None
    assert entry.state is ToolState.NEEDS_SCHEMA


async def test_a_schema_that_traps_or_loops_is_refused(shop: Workshop) -> None:
    """BR-096: a guest that can't say its schema is no tool."""
    offer = await shop.offer(Source(before_schema="unreachable"))
    assert "its schema() failed: The tool crashed" in offer.reason


async def test_a_guest_without_extras_is_active_under_its_own_schema(shop: Workshop) -> None:
    """BR-096: a module that passes registration is callable."""
    offer = await shop.offer(Source(), name="my-tool")
    assert offer.state is ToolState.ACTIVE
    tool = offer.tool
    assert tool.definition.name == "my-tool"
    assert tool.definition.parameters_json == TEXT_SCHEMA
    traits = tool.traits
    assert (traits.source, traits.owner, traits.original_name) == (ToolSource.WASM, "my-tool.wasm", "my-tool")
    assert (traits.approval, traits.read_only, traits.timeout_s) == (Approval.NEVER, False, 30)
    assert (await tool.execute({"text": "x"}, context())).result == '{"text":"x"}'


async def test_the_sidecar_wins_over_the_guest(shop: Workshop) -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    sidecar = {
        "version": 1,
        "description": "Says the weather.",
        "schema": schema,
        "limits": {"timeout_s": 3.5},
        "approval": "always",
        "coerce": "safe",
        "read_only": True,
        "idempotent": True,
    }
    offer = await shop.offer(Source(schema="not json"), sidecar=sidecar)
    assert offer.state is ToolState.ACTIVE
    assert offer.tool.definition.description == "Says the weather."
    assert offer.tool.definition.parameters == schema
    traits = offer.tool.traits
    assert (traits.approval, traits.read_only, traits.idempotent) == (Approval.ALWAYS, True, True)
    assert traits.coerce_safe
    assert traits.timeout_s == 3.5


@pytest.mark.parametrize("schema", [None, {}, {"type": "object"}])
async def test_a_placeholder_in_the_sidecar_is_one_too(shop: Workshop, schema: object) -> None:
    offer = await shop.offer(Source(), sidecar={"version": 1, "schema": schema})
    assert offer.state is ToolState.NEEDS_SCHEMA


async def test_overrides_do_not_hide_a_guest_that_cant_start(shop: Workshop) -> None:
    """BR-096: what passes registration is callable, whoever gave its schema."""
    broken = Source(declarations="(func $start unreachable) (start $start)")
    sidecar = {"version": 1, "description": "d", "schema": {"type": "object", "required": ["a"]}}
    offer = await shop.offer(broken, sidecar=sidecar)
    assert offer.state is ToolState.FAILED_TO_LOAD
    assert "it can't be started" in offer.reason


async def test_a_bad_sidecar_refuses_its_tool_and_names_itself(shop: Workshop) -> None:
    offer = await shop.offer(Source(), sidecar={"version": 1, "http": {"alow": []}})
    assert offer.state is ToolState.FAILED_TO_LOAD
    assert offer.reason.startswith("guest.capabilities.json: http.alow: unknown key")


async def test_a_fault_of_our_own_fails_one_file_and_is_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """PD-41: nothing that loading raises reaches whoever loads a whole directory."""

    class Broken(WasmRuntime):
        async def prepare(self, wasm: bytes) -> NoReturn:
            raise RuntimeError("the inner words")

    runtime = Broken(cache_dir=tmp_path, cache_key=b"k" * 32, clock=RealClock())
    offer = await load_wasm_tool(CALC, runtime)
    await runtime.close()
    assert (offer.state, offer.reason) == (ToolState.FAILED_TO_LOAD, f"calc.wasm: {FAULT}")
    assert "the inner words" in caplog.text


async def test_a_bad_file_never_holds_up_its_neighbours(shop: Workshop) -> None:
    """BR-096: a directory loads whatever lies in it."""
    folder = shop.directory / "tools"
    folder.mkdir()
    build(Source(), folder / "good.wasm")
    (folder / "bad.wasm").write_bytes(b"(module)")
    (folder / "notes.txt").write_text("no tool")
    (folder / "folder.wasm").mkdir()
    offers = await load_directory(folder, shop.runtime)
    assert [(offer.tool.definition.name, offer.state.value) for offer in offers] == [
        ("bad", "failed_to_load"),
        ("folder", "failed_to_load"),
        ("good", "active"),
    ]
    assert await load_directory(shop.directory / "absent", shop.runtime) == []

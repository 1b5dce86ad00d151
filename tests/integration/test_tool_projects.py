"""Tools are built of their sources and tried in the sandbox that jobs get (PD-45, DC-2)."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_wasm_grants import ASK_SECRET, READ
from tests.support.deadline import eventually
from tests.support.mcp import alive
from tests.support.wasm.guests import Source, core_binary
from tests.support.wasm.guests import build as build_guest
from tests.support.wasm.projects import NewProject
from tests.support.wasm.workshop import RealClock
from wasm_tools.projects.build import build
from wasm_tools.projects.cases import read_cases
from wasm_tools.projects.errors import BadProject, BuildFailed, UnfitTool
from wasm_tools.projects.project import LANGUAGES, Language, Project
from wasm_tools.projects.scaffold import new_project
from wasm_tools.projects.trial import TrialClock, Tried, try_cases
from wasm_tools.runtime import WasmRuntime


class Bench:
    """Builds and tries on one runtime."""

    def __init__(self, runtime: WasmRuntime, clock: TrialClock) -> None:
        self.runtime = runtime
        self._clock = clock

    async def tried(self, project: Project) -> list[Tried]:
        cases = read_cases(project.directory / "cases.json")
        return [one async for one in try_cases(project, cases, self.runtime, self._clock)]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[Bench]:
    clock = TrialClock(RealClock())
    runtime = WasmRuntime(cache_dir=tmp_path / "cache", cache_key=b"k" * 32, clock=clock)
    try:
        yield Bench(runtime, clock)
    finally:
        await runtime.close()


def ready_made(directory: Path, source: Source, cases: list[dict[str, Any]]) -> Project:
    """A project that was built before, of a guest made for the test."""
    project = new_project("guest", "c", directory / "guest")
    build_guest(source, project.component)
    (project.directory / "cases.json").write_text(json.dumps(cases))
    return project


# --- built ---


@pytest.mark.timeout(300)
@pytest.mark.parametrize("language", LANGUAGES)
async def test_the_scaffold_of_each_language_builds_and_answers_all_its_cases(
    language: Language, new_tool: NewProject, bench: Bench
) -> None:
    project = new_tool(language)
    built = await build(project, bench.runtime)
    definition = built.offer.tool.definition
    assert definition.name == "days"
    assert definition.description.startswith("Counts the days from one date to another")
    assert definition.parameters["required"] == ["start"]
    assert all(part["description"] for part in definition.parameters["properties"].values())
    tried = await bench.tried(project)
    assert [(one.case.name, one.got) for one in tried if one.wrong] == []
    assert len(tried) == 6
    assert project.is_built()


ODD = {
    "nested": {"text": ["}", '"', "\\"]},
    "text": 'q " \\ / \n\t\b \u00e9 \u20ac \U0001f600 \x01',
    "after": 1,
}
ECHO = {
    "c": """#include "portside.h"
const char *const tool_schema = "{\\"type\\":\\"object\\",\\"properties\\":{\\"text\\":{\\"type\\":\\"string\\"}}}";
const char *const tool_description = "echoes";
void tool_execute(text params) {
  text found;
  if (json_text(params, "absent", &found) || !json_text(params, "text", &found)) fail(literal("wrong member"));
  say(found);
}""",
    "rust": """#![crate_type = "cdylib"]
mod portside;
pub const SCHEMA: &str = r#"{"type": "object", "properties": {"text": {"type": "string"}}}"#;
pub const DESCRIPTION: &str = "echoes";
pub fn execute(params: &portside::Json) -> Result<String, String> {
    assert!(params.text("absent").is_none() && params.number("after") == Some(1.0));
    portside::log(&portside::quoted("line"));
    Ok(params.text("text").ok_or("no text")?.to_string())
}""",
}


@pytest.mark.parametrize(("language", "source"), [("c", "tool.c"), ("rust", "tool.rs")])
async def test_the_way_to_the_host_by_hand_reads_every_kind_of_text(
    language: Language, source: str, new_tool: NewProject, bench: Bench
) -> None:
    project = new_tool(language)
    (project.directory / source).write_text(ECHO[language])
    cases = [
        {"params": ODD, "output": ODD["text"]},
        {"params": {**ODD, "text": "\ud83d"}, "output": "\ufffd"},
    ]
    (project.directory / "cases.json").write_text(json.dumps(cases))
    await build(project, bench.runtime)
    assert [(one.got, one.wrong) for one in await bench.tried(project)] == [(ODD["text"], ""), ("\ufffd", "")]


async def test_a_recipe_that_fails_shows_what_it_wrote_and_the_last_build_stays(
    tmp_path: Path, new_tool: NewProject, bench: Bench
) -> None:
    project = new_tool("c")
    project.component.write_bytes(b"the last one")
    (project.directory / "tool.c").write_text("int wrong(")
    with pytest.raises(BuildFailed, match=r"the build of days failed: build.sh ended with 1") as caught:
        await build(project, bench.runtime)
    assert "tool.c:1:11: error:" in caught.value.output
    project.recipe.write_text("echo much; exit 0")
    with pytest.raises(BuildFailed, match=r"wrote no .*days.wasm, which it is given") as caught:
        await build(project, bench.runtime)
    assert caught.value.output == "much"
    project.recipe.write_text(f"sleep 600 & echo $! > {tmp_path}/pid; echo begun; wait")
    with pytest.raises(BuildFailed, match=r"was ended after 0\.5 s") as caught:
        await build(project, bench.runtime, within_s=0.5)
    assert caught.value.output == "begun"
    left = int((tmp_path / "pid").read_text())
    await eventually(lambda: not alive(left))
    (project.workbench / "made").rmdir()
    project.workbench.rmdir()
    project.workbench.write_text("in the way")
    with pytest.raises(BadProject, match="can't be written: Not a directory"):
        await build(project, bench.runtime)
    project.recipe.unlink()
    with pytest.raises(BadProject, match=r"has no build.sh"):
        await build(project, bench.runtime)
    assert project.component.read_bytes() == b"the last one"
    assert not project.is_built()


TYPED = """(component
  (core module $code (func (export "f") (result i32) (i32.const 1)))
  (core instance $made (instantiate $code))
  (func (export "f") (result u32) (canon lift (core func $made "f"))))"""


async def test_what_can_not_be_a_tool_is_refused_at_once(tmp_path: Path, bench: Bench) -> None:
    """BR-096: core modules, worlds without functions, schemas that say nothing, sidecars that can't be followed."""
    project = new_project("days", "python", tmp_path / "days")
    made = tmp_path / "made.wasm"
    project.recipe.write_text(f'cp {made} "$1"')
    core_binary("(module)", made)
    with pytest.raises(UnfitTool, match=r"days.wasm: .*a core module; wrap it"):
        await build(project, bench.runtime)
    core_binary("(component)", made)
    with pytest.raises(UnfitTool, match="it exports nothing; expected portside:tool"):
        await build(project, bench.runtime)
    build_guest(Source(schema="{}"), made)
    with pytest.raises(UnfitTool, match="its schema says nothing about its parameters"):
        await build(project, bench.runtime)
    build_guest(Source(), made)
    project.sidecar.write_text('{"version": 1, "limit": {}}')
    with pytest.raises(UnfitTool, match=r"days.capabilities.json: limit: unknown key"):
        await build(project, bench.runtime)
    project.sidecar.unlink()
    reserved = new_project("network", "python", tmp_path / "reserved")
    reserved.recipe.write_text(project.recipe.read_text())
    core_binary(TYPED, made)
    with pytest.raises(UnfitTool, match="would be named 'network_f'; that name is reserved"):
        await build(reserved, bench.runtime)
    build_guest(Source(), made)
    assert not project.component.exists()
    await build(project, bench.runtime)
    assert project.is_built()


# --- tried ---


async def test_a_case_that_is_not_as_expected_says_what_came(tmp_path: Path, bench: Bench) -> None:
    project = ready_made(
        tmp_path,
        Source(),
        [
            {"params": {"text": "a"}, "output": '{"text":"a"}'},
            {"params": {"text": "a"}, "output": '{"text": "a"}'},
            {"params": {"text": "a"}, "output_json": {"text": "a"}},
            {"params": {"n": 1}, "output_json": {"n": True}},
            {"params": {"text": "a"}, "output_contains": "b"},
            {"params": {"text": "a"}, "error": "a"},
            {"params": {"text": 1}, "output": "x"},
            {"params": {"text": 1}, "error": "/text"},
            {"tool": "other", "params": {}, "output": "x"},
        ],
    )
    wrong = [one.wrong for one in await bench.tried(project)]
    assert wrong == [
        "",
        'expected output "{\\"text\\": \\"a\\"}"',
        "",
        'expected output json {"n": true}',
        'expected output contains "b"',
        'an output came where error "a" was expected',
        'an error came where output "x" was expected',
        "",
        "'tool' has to name one of guest",
    ]


async def test_a_case_runs_under_the_sidecar_as_it_is_now(tmp_path: Path, bench: Bench) -> None:
    """Limits and grants are those of a job's call; approval is given by being there."""
    loop = ready_made(tmp_path, Source(execute="(loop $l (br $l)) unreachable"), [])
    loop.sidecar.write_text('{"version": 1, "limits": {"timeout_s": 0.2}, "approval": "always"}')
    (loop.directory / "cases.json").write_text('[{"params": {}, "error": "tool_timeout"}]')
    (tried,) = await bench.tried(loop)
    assert tried.wrong == ""
    loop.sidecar.write_text("{")
    with pytest.raises(UnfitTool, match="not JSON"):
        await bench.tried(loop)


async def test_a_case_s_files_and_secrets_are_seen_as_far_as_the_sidecar_grants(
    tmp_path: Path, bench: Bench
) -> None:
    files = {"data/a.txt": "granted", "other.txt": "not granted"}
    cases = [
        {"params": {"text": "data/a.txt"}, "workspace": files, "output": "granted"},
        {"params": {"text": "other.txt"}, "workspace": files, "output": "0"},
        {"params": {"text": "data/a.txt"}, "output": "0"},
    ]
    reader = ready_made(tmp_path / "reader", READ, cases)
    reader.sidecar.write_text('{"version": 1, "workspace": {"read": ["data"]}}')
    assert [one.wrong for one in await bench.tried(reader)] == ["", "", ""]
    cases = [
        {"params": {"text": "known"}, "secrets": {"known": "v", "other": "v"}, "output": "1"},
        {"params": {"text": "other"}, "secrets": {"known": "v", "other": "v"}, "output": "0"},
        {"params": {"text": "known"}, "output": "0"},
    ]
    asker = ready_made(tmp_path / "asker", ASK_SECRET, cases)
    asker.sidecar.write_text('{"version": 1, "secrets": {"exists": ["known"]}}')
    assert [one.wrong for one in await bench.tried(asker)] == ["", "", ""]

"""A tool's author at the command line, from nothing to a tool that a job calls (PD-45, PD-14)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine
from tests.support.wasm.projects import NewProject

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

SCRIPT = """
turns:
  - expect: {tools: [days]}
    call: [{tool: days, arguments: {start: "2026-02-30"}}]
  - expect: {last_tool_result: {tool: days, is_error: true, contains: there is no day 2026-02-30}}
    call: [{tool: days, arguments: {start: "2026-02-28", end: "2026-03-01"}}]
  - expect: {last_tool_result: {tool: days, is_error: false, contains: '"count":1,'}}
    call: [{tool: finish, arguments: {success: true, summary: one day}}]
"""


@pytest.fixture
def author(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path / "home", {})


def test_from_nothing_to_a_tool_that_a_job_calls(
    author: CommandLine, new_tool: NewProject, tmp_path: Path
) -> None:
    new_tool("c")  # without a toolchain there is nothing to see
    where = str(tmp_path / "project")
    begun = author.run("tools", "new", "days", "--lang", "c", "--dir", where, "--json")
    assert json.loads(begun.out)["directory"] == where
    page = str(tmp_path / "page")
    told = author.run("tools", "new", "page", "--lang", "javascript", "--dir", page).out
    assert told.endswith(f"npm ci --prefix {page} && portside tools build {page}\n")
    early = author.run("tools", "add", where)
    assert (early.exit_code, "it is not built; type: portside tools build" in early.err) == (1, True)
    built = json.loads(author.run("tools", "build", where, "--json").out)
    assert [tool["name"] for tool in built["tools"]] == ["days"]
    assert Path(built["file"]).stat().st_size == built["bytes"]
    tried = author.run("tools", "test", where)
    assert tried.exit_code == 0, tried.out + tried.err
    assert tried.out.splitlines()[-1] == "6 of 6 cases are as expected"
    added = author.run("tools", "add", where)
    assert "days is registered; sandboxed jobs see it" in added.out
    assert "openai: unchanged" in added.out
    script = tmp_path / "script.yaml"
    script.write_text(SCRIPT)
    ran = author.run("run", "how long?", "--mode", "in-process", "--model", f"scripted:{script}", "--json")
    assert ran.exit_code == 0, ran.out + ran.err


def test_what_is_wrong_with_sources_and_cases_is_shown_and_told_by_the_exit_code(
    author: CommandLine, new_tool: NewProject
) -> None:
    project = new_tool("c")
    where = str(project.directory)
    source = project.directory / "tool.c"
    source.write_text(source.read_text().replace('"Friday"', '"Fryday"'))
    tried = author.run("tools", "test", where)
    assert tried.exit_code == 1
    assert tried.out.splitlines()[-1] == "4 of 6 cases are as expected"
    assert 'got {"count":2,"start":"Wednesday","end":"Fryday"}' in tried.out
    told = json.loads(author.run("tools", "test", where, "--json").out)
    assert (told["passed"], [one["passed"] for one in told["cases"]].count(False)) == (4, 2)
    source.write_text("int wrong(")
    stale = author.run("tools", "add", where)
    assert (stale.exit_code, "its sources changed since its last build" in stale.err) == (1, True)
    broken = author.run("tools", "build", where)
    assert broken.exit_code == 1
    assert "tool.c:1:11: error:" in broken.err
    assert broken.err.splitlines()[-1] == "portside: the build of days failed: build.sh ended with 1"
    again = author.run("tools", "new", "days", "--lang", "c", "--dir", where)
    assert (again.exit_code, "is not empty, and nothing was written" in again.err) == (2, True)

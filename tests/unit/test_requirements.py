"""Requirements and tests name each other (PD-15)."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.requirements import REQUIREMENTS

TESTS = Path(__file__).resolve().parents[1]
ID = re.compile(r"\b(?:HW|WN|AT|DC|PD|BR)-\d+\b")


def _named(file: Path) -> set[str]:
    """The ids in the docstrings of a test module and of its tests."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    holders = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts = (ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, holders))
    return {name for text in texts for name in ID.findall(text)}


NAMED = {file: _named(file) for file in sorted(TESTS.rglob("test_*.py"))}


def test_every_requirement_has_a_test() -> None:
    named = set[str]().union(*NAMED.values())
    assert sorted(set(REQUIREMENTS) - named) == []


def test_every_test_module_names_a_requirement() -> None:
    assert [str(file.relative_to(TESTS)) for file, names in NAMED.items() if not names] == []


def test_no_test_names_an_unknown_requirement() -> None:
    unknown = {name: file.name for file, names in NAMED.items() for name in names - set(REQUIREMENTS)}
    assert unknown == {}

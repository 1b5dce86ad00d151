"""Scopes of claims: what overlaps what, and what can't be claimed."""

from __future__ import annotations

import pytest

from orchestrator.domain.network.claims import Scope, ScopeType, same_scope, scope_of, scopes_overlap
from orchestrator.domain.network.globs import PathScope, path_scope
from orchestrator.domain.network.refusals import Refusal


def path(text: str) -> PathScope:
    read = path_scope(text)
    assert isinstance(read, PathScope), read
    return read


def scope(kind: str, text: str, resource: str | None = None) -> Scope:
    read = scope_of(ScopeType(kind), text, resource)
    assert isinstance(read, Scope), read
    return read


@pytest.mark.parametrize(
    ("asked", "meets"),
    [
        ("src/a.py", True),
        ("src", True),
        ("src/", True),
        ("./src/x/../x/b.py", True),
        ("src/*.txt", False),
        ("lib/**", False),
        ("**/test_*.py", True),
        ("SRC/a.py", False),
        ("src/pkg/", True),
        ("src/[ab].py", True),
        ("{src,lib}/c.py", True),
        ("src/link.py", True),
        ("**", True),
    ],
)
def test_a_held_glob_meets_what_shares_a_path_with_it(asked: str, meets: bool):
    """BR-129: overlap is neither text equality nor one-directional."""
    assert path("src/**/*.py").overlaps(path(asked)) is meets
    assert path(asked).overlaps(path("src/**/*.py")) is meets


@pytest.mark.parametrize(
    ("one", "other", "meets"),
    [
        ("src/compiler/**", "src/compiler/parser/**", True),
        ("src/compiler/**", "src/api/**", False),
        ("src/compiler", "src/compiler/parser.ts", True),
        ("src/compiler/**", "src/compiler", True),
        ("a/**", "b/**", False),
        ("src/*", "src/x", True),
        (".", "anything", True),
        ("src/a.py", "src/b.py", False),
        ("src/compiler", "srcx/compiler", False),
        ("src/*.py", "src/*.go", False),
        ("src/*.py", "src/a.go", False),
        ("src/**/a.py", "src/b.py", False),
        ("**/x.py", "src/y.go", False),
        ("src/[ab].py", "src/a.py", True),
        ("src/[!ab].py", "src/a.py", False),
        ("src/{a,b}.py", "src/a.py", True),
        ("src/{a,b}.py", "src/c.py", False),
        ("{src/{a,b},lib}/x", "src/b/x/y", True),
        ("src/*/x.py", "src/x.py", False),
        ("src/**/x.py", "src/x.py", True),
        ("src/a**b", "src/axxb", True),
        ("src/v1.2", "src/v1.2/a.py", True),
        ("src/b.py/", "src/b.py/c.py", True),
        ("src/b.py", "src/b.py/c.py", True),
        ("src/??", "src/abc", False),
        ("src/[]a]", "src/]", True),
        ("src/[ab", "src/[ab", True),
        ("src/[ab", "src/a", False),
        ("src/{a}", "src/a", False),
        (".github/*", ".github/workflows/ci.yml", True),
        ("caf\u00e9", "cafe\u0301", True),
        ("src/[z-a]", "src/*", False),
    ],
)
def test_path_scopes_overlap_when_they_share_a_path(one: str, other: str, meets: bool):
    assert path(one).overlaps(path(other)) is meets
    assert path(other).overlaps(path(one)) is meets


@pytest.mark.parametrize(
    "text",
    ["", "  ", " /", "a/ /b", "../other", "src/../../x", "/etc", "/", "a\\b", "a\nb", "a\x00b", "**/../x",
     "{src,}", "{a,../b}", "x" * 513, "{a,b}" * 12],
)  # fmt: skip
def test_what_is_no_scope_is_refused_with_the_reason(text: str):
    """BR-129: empty scopes and scopes outside the workspace are invalid."""
    read = path_scope(text)
    assert isinstance(read, Refusal)
    assert read.code == "invalid_scope"
    assert "can't be claimed" in read.message


@pytest.mark.parametrize(
    ("given", "shown"),
    [("./src//x/../y/", "src/y"), (".", "."), ("./", "."), ("a/***", "a/*"), ("a/**/**/b", "a/**/b"),
     ("b.py/", "b.py/")],
)  # fmt: skip
def test_a_path_scope_is_shown_normalised(given: str, shown: str):
    assert path(given).text == shown


def test_scopes_are_the_same_however_they_are_spelled():
    assert same_scope(scope("path", "src/{a,b}/"), scope("path", "./src/{b,a}"))
    assert not same_scope(scope("path", "src"), scope("path", "src/*"))
    assert not same_scope(scope("path", "src", "billing"), scope("path", "src"))
    assert same_scope(scope("resource", "git@host.org:o/r.git"), scope("resource", "https://host.org/o/r"))


@pytest.mark.parametrize(
    ("one", "other", "meets"),
    [
        (scope("path", "src", "git@host.org:o/r"), scope("path", "src", "https://host.org/o/r"), True),
        (scope("path", "src", "https://host.org/o/r"), scope("path", "src", "https://host.org/o/s"), False),
        (scope("path", "src", "https://host.org/o/r"), scope("path", "src"), True),
        (scope("task", "t1"), scope("task", "t1"), True),
        (scope("task", "t1"), scope("task", "t2"), False),
        (scope("task", "src"), scope("path", "src"), False),
        (scope("resource", "src"), scope("path", "src"), False),
        (scope("resource", "https://host.org/o/r"), scope("path", "src", "git@host.org:o/r.git"), True),
        (scope("resource", "billing-db"), scope("resource", "billing-db"), True),
    ],
)
def test_scopes_of_other_types_and_resources_meet_only_where_they_can(one: Scope, other: Scope, meets: bool):
    assert scopes_overlap(one, other) is meets
    assert scopes_overlap(other, one) is meets

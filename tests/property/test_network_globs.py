"""Overlap of scopes against brute force: a matcher of another kind, over every path of a small universe."""

from __future__ import annotations

import re
from functools import cache
from itertools import product

from hypothesis import example, given, settings
from hypothesis import strategies as st

from orchestrator.domain.network.globs import PathScope, path_scope
from orchestrator.domain.network.name_patterns import names_meet

NAMES = tuple("".join(name) for size in range(1, 5) for name in product("abc", repeat=size))
SHORT_NAMES = ("a", "b", "c", "ab")
PATHS = tuple("/".join(path) for depth in range(1, 7) for path in product(SHORT_NAMES, repeat=depth))

units = st.sampled_from(["a", "b", "?", "*", "[ab]", "[!a]", "[b-c]", "[^ab]"])
name_patterns = st.lists(units, min_size=1, max_size=3).map("".join).filter(lambda text: "**" not in text)
path_names = st.sampled_from(
    ["a", "b", "ab", "*", "**", "?", "[ab]", "[!b]", "a*", "*b", "{a,b}", "{a,b/*}b"]
)
path_patterns = st.lists(path_names, min_size=1, max_size=3).map("/".join)


@cache
def name_regex(pattern: str) -> str:
    """A name pattern as a regular expression: `re`'s own reading of a set is the second opinion."""
    text = re.sub(r"\[\^", "[!", pattern)
    parts = re.findall(r"\[!?[^\]]+\]|.", text)
    wild = {"*": "[^/]*", "?": "[^/]"}
    return "".join(wild.get(part) or (part.replace("[!", "[^/") if len(part) > 1 else part) for part in parts)


@cache
def path_regex(pattern: str) -> re.Pattern[str]:
    """A brace-free path pattern, with what lies below it."""
    text = ""
    for name in pattern.split("/"):
        text += "(?:[^/]+/)*" if name == "**" else f"{name_regex(name)}/"
    return re.compile(f"{text}(?:[^/]+/)*")


def alternatives(pattern: str) -> list[str]:
    """Braces written out, innermost first."""
    found = re.search(r"\{([^{}]*)\}", pattern)
    if found is None:
        return [pattern]
    return [
        text
        for part in found[1].split(",")
        for text in alternatives(pattern[: found.start()] + part + pattern[found.end() :])
    ]


@cache
def covered(pattern: str) -> frozenset[str]:
    regexes = [path_regex(text) for text in alternatives(pattern)]
    return frozenset(path for path in PATHS if any(regex.fullmatch(path + "/") for regex in regexes))


def scope(text: str) -> PathScope:
    read = path_scope(text)
    assert isinstance(read, PathScope), read
    return read


@given(name_patterns, name_patterns)
@settings(max_examples=400)
def test_names_meet_exactly_when_some_name_matches_both(a: str, b: str):
    one, other = re.compile(name_regex(a)), re.compile(name_regex(b))
    matched = any(one.fullmatch(name) and other.fullmatch(name) for name in NAMES)
    # Three units each: a name that both match, if there is one, needs no more than four letters of three...
    # Of three units each, a common name needs no more than four letters of three kinds.
    assert names_meet(a, b) is matched


@given(path_patterns, path_patterns)
@example("a/**/b", "a/b")
@example("**/a", "b/**")
@example("{a,b/*}b", "b/?b")
@settings(max_examples=200, deadline=None)
def test_scopes_overlap_exactly_when_some_path_lies_in_both(a: str, b: str):
    """BR-129: no conflict is missed and none is invented."""
    assert scope(a).overlaps(scope(b)) is bool(covered(a) & covered(b))


@given(path_patterns, path_patterns)
def test_overlap_has_no_direction_and_meets_itself(a: str, b: str):
    one, other = scope(a), scope(b)
    assert one.overlaps(other) is other.overlaps(one)
    assert one.overlaps(one)
    assert one.overlaps(scope("."))


@given(st.text(alphabet="ab/.*?[]!{},- ", max_size=24))
@example(" /")
@example("{a,b/{/../}")
@settings(max_examples=500)
def test_a_scope_that_was_read_reads_the_same_again(text: str):
    read = path_scope(text)
    if isinstance(read, PathScope):
        assert path_scope(read.text) == read

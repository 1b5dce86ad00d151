"""Scopes of paths, and whether two of them share a path: exact, by construction, not by sampling.

A scope is a glob pattern over normalised, relative, `/`-separated paths:

    *        any run of characters within a name       **       any run of whole names, also none
    ?        one character of a name                   [a-z]    one of a set; `!` or `^` first negates it
    {a,b}    either text                               .        everything

Dot files are like others, case matters, and a symbolic link is its own path (this code sees no file system).

A directory contains its children, so a scope also covers what lies below its matches. Which names are
directories can't be looked up here, so the names say it: a last name whose extension begins with a letter
(`b.py`, `*.txt`) is a file and has no children, unless it was written with a trailing slash or one of the two
scopes uses that very name as a directory; any other last name (`src`, `v1.2`, `*`) has children.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from itertools import product

from orchestrator.domain.network.braces import alternatives
from orchestrator.domain.network.name_patterns import GLOB_CHARS, names_meet
from orchestrator.domain.network.pattern_runs import meet
from orchestrator.domain.network.refusals import Refusal

MAX_SCOPE_CHARS = 512
MAX_EXPANDED_CHARS = 2048

_ANY_NAMES = "**"
_FILE = re.compile(r".+\.\[?[A-Za-z][^.]*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class PathPattern:
    """One brace-free alternative of a scope.

    Attributes:
        names: the pattern, name by name; empty is the root.
        is_directory: the last name looks like a file's and was written with a trailing slash.
    """

    names: tuple[str, ...]
    is_directory: bool = False

    def __str__(self) -> str:
        return ("/".join(self.names) or ".") + ("/" if self.is_directory and self.names else "")


@dataclass(frozen=True, slots=True)
class PathScope:
    """A set of paths.

    Attributes:
        text: how it is shown; reading it again gives the same scope.
        patterns: its alternatives, sorted; equal for scopes that are spelled alike after normalising.
    """

    text: str
    patterns: tuple[PathPattern, ...]

    def overlaps(self, other: PathScope) -> bool:
        """Whether some path lies in both."""
        return any(_patterns_meet(mine, its) for mine, its in product(self.patterns, other.patterns))


def path_scope(text: str) -> PathScope | Refusal:
    """Read a scope: normalise it and write out its braces.

    Returns:
        The scope, or `invalid_scope` for an empty, absolute, over-long or unprintable one, and for one that
        leaves the root.
    """
    text = unicodedata.normalize("NFC", text)
    if not text.strip():
        return _invalid(text, "it is empty; use '.' for everything")
    if len(text) > MAX_SCOPE_CHARS:
        return _invalid(text, f"it is over {MAX_SCOPE_CHARS} characters")
    if not text.isprintable() or "\\" in text:
        return _invalid(text, "use printable characters, and '/' between names")
    patterns: dict[PathPattern, None] = {}
    size = 0
    for alternative in alternatives(text):
        size += len(alternative) + 1
        if size > MAX_EXPANDED_CHARS:
            return _invalid(
                text, f"its braces write out to over {MAX_EXPANDED_CHARS} characters; use several claims"
            )
        pattern = _pattern(alternative)
        if isinstance(pattern, str):
            return _invalid(text, pattern)
        patterns[pattern] = None
    ordered = tuple(sorted(patterns, key=str))
    # Braces stay as they were written: a name may hold a lone brace or a comma of its own.
    return PathScope(text if "{" in text else str(ordered[0]), ordered)


def _pattern(text: str) -> PathPattern | str:
    """One alternative as a normalised pattern, or what is wrong with it."""
    if not text.strip():
        return "one of its alternatives is empty; use '.' for everything"
    if text.startswith("/"):
        return "it is absolute; scopes are relative to the workspace's root"
    if any(name and not name.strip() for name in text.split("/")):
        return "one of its names is blank"
    names = _normal_names(text)
    if isinstance(names, str):
        return names
    slashed = text.endswith(("/", "/.", "/.."))
    return PathPattern(names, slashed and bool(names) and _looks_like_file(names[-1]))


def _normal_names(text: str) -> tuple[str, ...] | str:
    """The names of a path pattern without `.`, `..` and doubled runs, or what is wrong with it."""
    names: list[str] = []
    for name in text.split("/"):
        if name == "..":
            if not names:
                return "it leaves the workspace's root"
            if names.pop() == _ANY_NAMES:
                return "'..' can't follow '**'"
        elif name == _ANY_NAMES:
            if names[-1:] != [_ANY_NAMES]:
                names.append(name)
        elif name not in {"", "."}:
            names.append(re.sub(r"\*+", "*", name))
    return tuple(names)


def _invalid(text: str, why: str) -> Refusal:
    shown = text if len(text) <= 80 else text[:77] + "..."
    return Refusal("invalid_scope", f"{shown!r} can't be claimed: {why}")


def _patterns_meet(a: PathPattern, b: PathPattern) -> bool:
    directories = _named_directories(a) | _named_directories(b)
    return meet(_covered(a, directories), _covered(b, directories), lambda n: n == _ANY_NAMES, names_meet)


def _named_directories(pattern: PathPattern) -> frozenset[str]:
    """The literal names that a pattern uses as directories."""
    used = pattern.names if pattern.is_directory else pattern.names[:-1]
    return frozenset(name for name in used if not GLOB_CHARS.intersection(name))


def _covered(pattern: PathPattern, directories: frozenset[str]) -> tuple[str, ...]:
    """The pattern of all that is covered: with the children, where there can be some."""
    if pattern.names and not pattern.is_directory:
        last = pattern.names[-1]
        if last not in directories and _looks_like_file(last):
            return pattern.names
    return (*pattern.names, _ANY_NAMES)


def _looks_like_file(name: str) -> bool:
    return _FILE.fullmatch(name) is not None

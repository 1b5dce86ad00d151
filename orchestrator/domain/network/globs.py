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
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TypeVar

from orchestrator.domain.network.refusals import Refusal

MAX_SCOPE_CHARS = 512
MAX_EXPANDED_CHARS = 2048

T = TypeVar("T", bound=Hashable)

_ANY_NAMES = "**"
_GLOB_CHARS = frozenset("*?[")
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
    for alternative in _alternatives(text):
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


# --- braces ----------------------------------------------------------------------------------------------


def _alternatives(text: str) -> Iterator[str]:
    """Write out `{a,b}`, also nested, lazily; braces without a comma or a partner are ordinary characters."""
    found = _first_braces(text)
    if found is None:
        yield text
        return
    start, end, parts = found
    for part in parts:
        yield from _alternatives(text[:start] + part + text[end:])


def _first_braces(text: str) -> tuple[int, int, list[str]] | None:
    for start, char in enumerate(text):
        if char == "{":
            found = _closing(text, start)
            if found and len(found[1]) > 1:
                return start, found[0], found[1]
    return None


def _closing(text: str, start: int) -> tuple[int, list[str]] | None:
    """Where the brace at `start` ends, and the texts between its commas; None when it never ends."""
    depth, parts, begin = 0, list[str](), start + 1
    for at in range(start, len(text)):
        char = text[at]
        if char == "{":
            depth += 1
        elif char == "," and depth == 1:
            parts.append(text[begin:at])
            begin = at + 1
        elif char == "}":
            depth -= 1
            if depth == 0:
                return at + 1, [*parts, text[begin:at]]
    return None


# --- paths -----------------------------------------------------------------------------------------------


def _patterns_meet(a: PathPattern, b: PathPattern) -> bool:
    directories = _named_directories(a) | _named_directories(b)
    return _meet(_covered(a, directories), _covered(b, directories), lambda n: n == _ANY_NAMES, names_meet)


def _named_directories(pattern: PathPattern) -> frozenset[str]:
    """The literal names that a pattern uses as directories."""
    used = pattern.names if pattern.is_directory else pattern.names[:-1]
    return frozenset(name for name in used if not _GLOB_CHARS.intersection(name))


def _covered(pattern: PathPattern, directories: frozenset[str]) -> tuple[str, ...]:
    """The pattern of all that is covered: with the children, where there can be some."""
    if pattern.names and not pattern.is_directory:
        last = pattern.names[-1]
        if last not in directories and _looks_like_file(last):
            return pattern.names
    return (*pattern.names, _ANY_NAMES)


def _looks_like_file(name: str) -> bool:
    return _FILE.fullmatch(name) is not None


# --- names -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Chars:
    """A set of characters as inclusive, ascending ranges; `run` stands for any number of any of them."""

    ranges: tuple[tuple[int, int], ...]
    run: bool = False

    def meets(self, other: _Chars) -> bool:
        return any(max(lo, a) <= min(hi, b) for lo, hi in self.ranges for a, b in other.ranges)


def _all_but(ranges: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Every character of a name but these: neither NUL nor '/' can be in one."""
    rest: list[tuple[int, int]] = []
    low = 1
    for lo, hi in sorted((*ranges, (47, 47))):
        if lo > low:
            rest.append((low, lo - 1))
        low = max(low, hi + 1)
    if low <= 0x10FFFF:
        rest.append((low, 0x10FFFF))
    return tuple(rest)


_ANY_CHAR = _Chars(_all_but(()))
_ANY_RUN = _Chars(_ANY_CHAR.ranges, run=True)


def names_meet(a: str, b: str) -> bool:
    """Whether some name matches both name patterns (no `/`, no braces)."""
    if not (_GLOB_CHARS.intersection(a) or _GLOB_CHARS.intersection(b)):
        return a == b
    return _meet(tuple(_chars(a)), tuple(_chars(b)), lambda c: c.run, _Chars.meets)


def _chars(name: str) -> Iterator[_Chars]:
    at = 0
    while at < len(name):
        char = name[at]
        end = _set_end(name, at) if char == "[" else None
        if end is not None:
            yield _set(name[at + 1 : end])
            at = end
        elif char == "*":
            yield _ANY_RUN
        elif char == "?":
            yield _ANY_CHAR
        else:
            yield _Chars(((ord(char), ord(char)),))
        at += 1


def _set_end(name: str, start: int) -> int | None:
    """Where the set that begins at `start` ends; None when it doesn't, and the bracket is an ordinary one."""
    first = start + 2 if name[start + 1 : start + 2] in {"!", "^"} else start + 1
    # A closing bracket that comes first belongs to the set.
    end = name.find("]", first + 1)
    return None if end < 0 else end


def _set(body: str) -> _Chars:
    negated = body[0] in "!^"
    text = body[1:] if negated else body
    ranges: list[tuple[int, int]] = []
    at = 0
    while at < len(text):
        last = at + 2 if text[at + 1 : at + 2] == "-" and at + 2 < len(text) else at
        # A backward range such as z-a holds nothing.
        if text[at] <= text[last]:
            ranges.append((ord(text[at]), ord(text[last])))
        at = last + 1
    if negated:
        return _Chars(_all_but(ranges))
    return _Chars(tuple(sorted(ranges)))


# --- sequences -------------------------------------------------------------------------------------------


def _meet(
    a: Sequence[T], b: Sequence[T], is_run: Callable[[T], bool], units_meet: Callable[[T, T], bool]
) -> bool:
    """Whether two patterns with runs match a common sequence.

    Walks the product of the two patterns, seen as automata: for each element of `a` in turn, bit `j` says
    that the first `j` elements of `b` can have been used by then. Time is a few operations on whole sets for
    each element of `a`, and `len(b)` comparisons for each that is new.
    """
    runs = _places(b, is_run)
    fits: dict[T, int] = {}
    reached = _spread(1, over=runs)
    for unit in a:
        if unit not in fits:
            fits[unit] = _places(b, partial(units_meet, unit))
        if is_run(unit):
            reached = _spread(reached, over=runs | fits[unit])
        else:
            taken = reached & fits[unit]
            # A run of `b` stays where it is while it takes a unit.
            reached = _spread((taken & ~runs) << 1 | (taken & runs), over=runs)
    return bool(reached >> len(b) & 1)


def _places(elements: Sequence[T], wanted: Callable[[T], bool]) -> int:
    """The set of places of the elements that are wanted."""
    return sum(1 << place for place, element in enumerate(elements) if wanted(element))


def _spread(reached: int, *, over: int) -> int:
    """All that can be reached by moving on over elements in `over`."""
    while (more := reached | (reached & over) << 1) != reached:
        reached = more
    return reached

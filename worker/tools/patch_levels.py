"""How a hunk's lines are compared with a file's, from strict to lax."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from itertools import pairwise

from worker.tools.text_file import as_escapes, as_latin_1

_TYPOGRAPHIC = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4`", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-"),
        **dict.fromkeys(
            "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000", " "
        ),
        "\u2026": "...",
        "\u200b": "",
        "\ufeff": "",
    }
)
_INDENTATION = re.compile(r"[ \t]*")


class Level(StrEnum):
    """How a hunk's old lines were compared with the file's, strictest first."""

    EXACT = "exact"
    LINE_ENDINGS = "line endings ignored"
    ESCAPED_BYTES = "undecodable bytes spelled \\xNN"
    LATIN_1 = "undecodable bytes read as Latin-1"
    TRAILING_SPACE = "trailing space ignored"
    TYPOGRAPHIC = "typographic quotes, dashes and spaces taken as plain ones"
    INDENTATION = "indentation ignored"


def _typographic(body: str) -> str:
    return as_latin_1(body).translate(_TYPOGRAPHIC).rstrip()


KEYS: dict[Level, Callable[[str], str]] = {
    Level.EXACT: str,
    Level.LINE_ENDINGS: str,
    Level.ESCAPED_BYTES: as_escapes,
    Level.LATIN_1: as_latin_1,
    Level.TRAILING_SPACE: lambda body: as_latin_1(body).rstrip(),
    Level.TYPOGRAPHIC: _typographic,
    Level.INDENTATION: lambda body: _typographic(body).lstrip(),
}
UNDECODED_ONLY = {Level.ESCAPED_BYTES, Level.LATIN_1}


def indentation_map(hunk: list[str], file: list[str]) -> dict[str, str] | None:
    """Which indentation of the file stands for which one of the hunk; None when that is not one to one."""
    mapped: dict[str, str] = {}
    for ours, theirs in zip(hunk, file, strict=True):
        if ours.strip() and mapped.setdefault(indentation(ours), indentation(theirs)) != indentation(theirs):
            return None
    in_order = sorted(mapped.items(), key=lambda pair: len(pair[0].expandtabs(8)))
    deeper = (len(one[1].expandtabs(8)) < len(two[1].expandtabs(8)) for one, two in pairwise(in_order))
    return mapped if all(deeper) else None


def indentation(text: str) -> str:
    """The blanks and tabs that a line begins with."""
    match = _INDENTATION.match(text)
    return match[0] if match else ""


def depth(line: str) -> int:
    """How far a line is indented, in columns."""
    return len(indentation(line).expandtabs(8))

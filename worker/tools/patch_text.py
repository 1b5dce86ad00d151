"""The lines of a patch, out of whatever a model wrapped them in."""

from __future__ import annotations

import re

from worker.tools.refusal import Refused

_HEREDOC = re.compile(
    r"""^\s*(?:(?:apply_?patch|cat|git\s+apply|patch)\b[^<]*)<<-?\s*(['"]?)([^\s'"|;&<>]+)\1\s*(?:\|\s*apply_?patch\s*)?$"""
)
_FENCE = re.compile(r"^\s*(`{3,}|~{3,})\s*[\w.+-]*\s*$")
_BARE_COMMAND = re.compile(r"^\s*apply_?patch\s*$")


def patch_lines(text: str) -> list[str]:
    """Split a patch into lines without their newlines, and take off fences and heredoc wrappers.

    Lines that were taken off become empty, so line numbers stay those of the text. When the patch as a
    whole was written with CRLF, the carriage returns go too; otherwise they belong to the lines.

    Raises:
        Refused: broken Unicode.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Refused("bad_patch", "The patch holds broken Unicode (a lone surrogate).") from error
    lines = text.removeprefix("\ufeff").removesuffix("\n").split("\n")
    if all(line.endswith("\r") for line in lines[:-1] if _is_structure(line)):
        lines = [line.removesuffix("\r") for line in lines]
    return _unwrapped(lines)


def _is_structure(line: str) -> bool:
    return line.startswith(("*** ", "@@", "diff --git ", "--- ", "+++ "))


def _unwrapped(lines: list[str]) -> list[str]:
    closers: list[str] = []
    first = 0
    for first, line in enumerate(lines):
        heredoc, fence = _HEREDOC.match(line), _FENCE.match(line)
        if heredoc:
            closers.append(heredoc[2])
        elif fence:
            closers.append(fence[1])
        elif line.strip() and not _BARE_COMMAND.match(line):
            break
        lines[first] = ""
    last = len(lines) - 1
    while last > first and (not lines[last].strip() or lines[last].strip() in closers):
        if lines[last].strip():
            closers.remove(lines[last].strip())
        lines[last] = ""
        last -= 1
    return lines

"""A file's new lines, from its old ones and the hunks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import pairwise

from worker.tools.patch_levels import Level, indentation, indentation_map
from worker.tools.patch_match import Match, Searcher
from worker.tools.patch_model import Hunk, HunkLine, LineKind
from worker.tools.refusal import Refused
from worker.tools.text_file import TextFile, as_escapes, line_body, line_ending

_ESCAPE = re.compile(r"\\x([89a-f][0-9a-f])")


@dataclass(frozen=True, slots=True)
class EditedFile:
    """The outcome of some hunks.

    Attributes:
        lines: the new content.
        added: how many lines are new.
        removed: how many went.
        level: the laxest comparison that was needed.
    """

    lines: list[str]
    added: int
    removed: int
    level: Level


def edit_file(file: TextFile, hunks: tuple[Hunk, ...], shown: str) -> EditedFile:
    """Apply hunks, each located in the original, so their order does not matter.

    Raises:
        Refused: a hunk has no place, several, or one that another hunk touches too.
    """
    searcher = Searcher(file, shown)
    placed = [(searcher.locate(hunk), hunk) for hunk in hunks]
    placed.sort(key=lambda pair: (pair[0].start, pair[0].end))
    for (first, _), (second, hunk) in pairwise(placed):
        if second.start < first.end or (second.start, second.end) == (first.start, first.end):
            raise Refused(
                "overlapping_hunks",
                f"{shown}: the hunk at line {hunk.patch_line} of the patch touches lines that another hunk "
                f"changes too, at line {second.start + 1} of the file. Join them into one hunk. Nothing was "
                "changed.",
                path=shown,
                patch_line=hunk.patch_line,
            )
    return _Editor(file).apply(placed)


@dataclass(frozen=True, slots=True)
class _NewLine:
    text: str
    fresh: bool
    stated: bool = False


class _Editor:
    def __init__(self, file: TextFile) -> None:
        self._file = file
        self._ending = file.ending
        self._added = 0
        self._removed = 0

    def apply(self, placed: list[tuple[Match, Hunk]]) -> EditedFile:
        new: list[_NewLine] = []
        at = 0
        for match, hunk in placed:
            new += [_NewLine(line, fresh=False) for line in self._file.lines[at : match.start]]
            new += self._replacement(match, hunk)
            at = match.end
        new += [_NewLine(line, fresh=False) for line in self._file.lines[at:]]
        levels = list(Level)
        level = max((match.level for match, _ in placed), key=levels.index, default=Level.EXACT)
        if level is Level.LINE_ENDINGS and not any(hunk.states_endings for _, hunk in placed):
            level = Level.EXACT  # this format has no way to state line endings
        return EditedFile(self._joined(new), self._added, self._removed, level)

    def _joined(self, new: list[_NewLine]) -> list[str]:
        lines = [line.text if line_ending(line.text) else line.text + self._ending for line in new[:-1]]
        for last in new[-1:]:
            keeps_style = last.fresh and not last.stated and not self._file.ends_with_newline
            lines.append(line_body(last.text) if keeps_style else last.text)
        return lines

    def _replacement(self, match: Match, hunk: Hunk) -> Iterator[_NewLine]:
        old = self._file.lines[match.start : match.end]
        added = _AddedText(self._file, match, old)
        stated = match.level is Level.EXACT and hunk.states_endings
        at = 0
        removed: list[str] = []
        for line in _minimal(match.lines):
            if line.kind is LineKind.ADDED:
                self._added += 1
                if stated:
                    yield _NewLine(
                        self._file.added(line.text) + line.full[len(line.text) :], fresh=True, stated=True
                    )
                else:
                    ending = (line_ending(removed.pop(0)) if removed else "") or self._ending
                    text = added.text(line.text.removesuffix("\r"))
                    yield _NewLine(
                        text + (ending if line.newline else ""), fresh=True, stated=hunk.says_no_newline
                    )
                continue
            if line.kind is LineKind.CONTEXT:
                removed.clear()
                yield _NewLine(old[at], fresh=False)
            else:
                self._removed += 1
                removed.append(old[at])
            at += 1


class _AddedText:
    """Writes a hunk's new lines the way the file writes its own."""

    def __init__(self, file: TextFile, match: Match, old: tuple[str, ...]) -> None:
        self._file = file
        self._level = match.level
        ours = [line.text.removesuffix("\r") for line in match.lines if line.kind is not LineKind.ADDED]
        bodies = [line_body(line) for line in old]
        self._indentations = (indentation_map(ours, bodies) or {}) if match.level is Level.INDENTATION else {}
        spelled = "".join(as_escapes(body) for body in bodies if as_escapes(body) != body)
        self._escapes = set(_ESCAPE.findall(spelled)) if match.level is Level.ESCAPED_BYTES else set[str]()

    def text(self, text: str) -> str:
        if self._indentations:
            text = self._indented(text)
        stored = self._file.added(text)
        if self._escapes:
            return _ESCAPE.sub(self._byte, stored)
        return stored

    def _byte(self, match: re.Match[str]) -> str:
        return chr(0xDC00 + int(match[1], 16)) if match[1] in self._escapes else match[0]

    def _indented(self, text: str) -> str:
        """Translate the indentation; an unknown one builds on the nearest shallower one."""
        own = indentation(text)
        if own in self._indentations or not text.strip():
            return self._indentations.get(own, own) + text[len(own) :]
        shallower = [known for known in self._indentations if own.startswith(known)]
        if shallower:
            base = max(shallower, key=len)
            return self._indentations[base] + self._deeper(own[len(base) :]) + text[len(own) :]
        raise Refused(
            "hunk_not_found",
            "The hunk fits only when its indentation is ignored, and new lines are indented less than all of "
            "the old ones. Copy the indentation from the file. Nothing was changed.",
        )

    def _deeper(self, extra: str) -> str:
        """Turn further blanks into the file's tabs or the other way round."""
        tabs = any(value.startswith("\t") for value in self._indentations.values())
        if tabs and not extra.strip(" "):
            unit = next((len(key) for key in sorted(self._indentations, key=len) if key), 4)
            return "\t" * max(1, len(extra) // min(unit, len(extra)))
        if not tabs and not extra.strip("\t"):
            unit = next((len(value) for value in sorted(self._indentations.values(), key=len) if value), 4)
            return " " * unit * len(extra)
        return extra


def _minimal(lines: tuple[HunkLine, ...]) -> list[HunkLine]:
    """The lines with every pair of an equal removed and added one taken as context."""
    result: list[HunkLine] = []
    run: list[HunkLine] = []
    for line in [*lines, None]:
        if line is not None and line.kind is not LineKind.CONTEXT:
            run.append(line)
            continue
        result += _minimal_run(run)
        run = []
        if line is not None:
            result.append(line)
    return result


def _minimal_run(run: list[HunkLine]) -> list[HunkLine]:
    removed = [line for line in run if line.kind is LineKind.REMOVED]
    added = [line for line in run if line.kind is LineKind.ADDED]
    if not removed or not added:
        return run
    matcher = SequenceMatcher(
        None, [line.full for line in removed], [line.full for line in added], autojunk=False
    )
    result: list[HunkLine] = []
    for operation, start, end, new_start, new_end in matcher.get_opcodes():
        if operation == "equal":
            result += [replace(line, kind=LineKind.CONTEXT) for line in removed[start:end]]
        else:
            result += removed[start:end] + added[new_start:new_end]
    return result

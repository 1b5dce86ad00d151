"""Finds the one place of a file that a hunk means.

Levels of tolerance are tried from strict to lax. At each level the place must be unique: two look-alikes are
an error that names both, never a guess. Comparing is all that is tolerant; lines that stay are copied from
the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from worker.tools.patch_levels import KEYS, UNDECODED_ONLY, Level, depth, indentation_map
from worker.tools.patch_model import Hunk, HunkLine, LineKind
from worker.tools.refusal import Refused
from worker.tools.text_file import TextFile, line_body
from worker.tools.workspace_paths import printable_name

_SHOWN_CANDIDATES = 5
_SEARCHED_LINES = 5000


@dataclass(frozen=True, slots=True)
class Match:
    """The place of a hunk.

    Attributes:
        start: index of the first old line; where to insert when there is none.
        lines: the hunk's lines, without a separator at their end.
        level: the tolerance that it took.
    """

    start: int
    lines: tuple[HunkLine, ...]
    level: Level

    @property
    def end(self) -> int:
        """Index behind the last old line."""
        return self.start + sum(line.kind is not LineKind.ADDED for line in self.lines)


@dataclass(frozen=True, slots=True)
class _Region:
    start: int
    end: int


class Searcher:
    """Finds hunks in one file.

    Args:
        file: its lines.
        shown: its name in messages.
    """

    def __init__(self, file: TextFile, shown: str) -> None:
        self._file = file
        self._shown = shown
        self._count = len(file.lines)
        self._keys: dict[Level, list[str]] = {}
        self._undecoded = file.undecoded

    def locate(self, hunk: Hunk) -> Match:
        """Find the hunk's only place.

        Raises:
            Refused: there is none, or more than one; the message shows the nearest places.
        """
        if not any(line.kind is not LineKind.ADDED and not line.bare for line in hunk.lines):
            return self._insertion(hunk)
        scopes = self._scopes(hunk)
        for regions in scopes:
            for level in self._levels(hunk):
                for lines in _without_separators(hunk.lines):
                    found = self._places(hunk, lines, level, regions)
                    if len(found) > 1:
                        raise self._ambiguous(hunk, found)
                    if found:
                        return Match(found[0], lines, level)
        raise self._not_found(hunk, scopes)

    def _levels(self, hunk: Hunk) -> Iterator[Level]:
        for level in Level:
            if level is Level.EXACT and not hunk.states_endings:
                continue
            if level in UNDECODED_ONLY and not self._undecoded:
                continue
            yield level

    def _insertion(self, hunk: Hunk) -> Match:
        """The place of a hunk that only adds lines."""
        lines = tuple(line for line in hunk.lines if line.kind is LineKind.ADDED)
        if self._count == 0:
            return Match(0, lines, Level.EXACT)
        if hunk.at_end:
            return Match(self._count, lines, Level.EXACT)
        if hunk.anchors:
            regions = self._scopes(hunk)[0]
            if len(regions) > 1:
                raise self._ambiguous(hunk, [region.start for region in regions])
            return Match(regions[0].start + 1, lines, Level.EXACT)
        raise Refused(
            "no_context",
            f"{self._shown}: the hunk at line {hunk.patch_line} of the patch only adds lines and does not "
            "say where. Give a line of context, or '*** End of File' to append.",
            path=self._shown,
            patch_line=hunk.patch_line,
        )

    def _places(
        self, hunk: Hunk, lines: Sequence[HunkLine], level: Level, regions: list[_Region]
    ) -> list[int]:
        old = [line for line in lines if line.kind is not LineKind.ADDED]
        wanted = [self._hunk_key(line, level) for line in old]
        keys = self._file_keys(level)
        if hunk.at_end:
            regions = [_Region(max(region.start, self._count - len(old)), region.end) for region in regions]
        found = sorted(
            {
                start
                for region in regions
                for start in _occurrences(keys, wanted, region)
                if level is not Level.INDENTATION or self._same_shape(old, start)
            }
        )
        stated = hunk.old_start - 1 if hunk.old_start is not None else -1
        if stated in found and level in {Level.EXACT, Level.LINE_ENDINGS}:
            return [stated]
        return found

    def _file_keys(self, level: Level) -> list[str]:
        if level not in self._keys:
            key = KEYS[level]
            exact = level is Level.EXACT
            self._keys[level] = [line if exact else key(line_body(line)) for line in self._file.lines]
        return self._keys[level]

    @staticmethod
    def _hunk_key(line: HunkLine, level: Level) -> str:
        return line.full if level is Level.EXACT else KEYS[level](line.text.removesuffix("\r"))

    def _same_shape(self, old: Sequence[HunkLine], start: int) -> bool:
        lines = (line_body(line) for line in self._file.lines[start : start + len(old)])
        return indentation_map([line.text for line in old], list(lines)) is not None

    def _scopes(self, hunk: Hunk) -> list[list[_Region]]:
        """Where to look: first inside the blocks that the anchors open, then anywhere after them."""
        whole = [_Region(0, self._count)]
        if not hunk.anchors:
            return [whole]
        regions = whole
        for anchor in hunk.anchors:
            at = self._anchor_lines(anchor, regions)
            if not at:
                raise self._anchor_missing(hunk, anchor)
            regions = [_Region(index, self._block_end(index)) for index in at]
        return [regions, [_Region(regions[0].start, self._count)]]

    def _anchor_lines(self, anchor: str, regions: list[_Region]) -> list[int]:
        wanted = KEYS[Level.INDENTATION](anchor)
        keys = self._file_keys(Level.INDENTATION)
        inside = [
            index for region in regions for index in range(region.start, region.end) if keys[index] == wanted
        ]
        if inside or (len(regions) == 1 and regions[0].end == self._count):
            return inside
        return [index for index in range(regions[0].start, self._count) if keys[index] == wanted]

    def _block_end(self, start: int) -> int:
        """Index behind the lines that are indented deeper than the one at `start`."""
        above = depth(self._file.lines[start])
        for index in range(start + 1, self._count):
            line = self._file.lines[index]
            if line.strip() and depth(line) <= above:
                return index
        return self._count

    def _ambiguous(self, hunk: Hunk, found: list[int]) -> Refused:
        places = [index + 1 for index in found]
        listed = ", ".join(map(str, places[:_SHOWN_CANDIDATES]))
        return Refused(
            "ambiguous_hunk",
            f"{self._shown}: the hunk at line {hunk.patch_line} of the patch fits {len(places)} places, at "
            f"lines {listed}{' and more' if len(places) > _SHOWN_CANDIDATES else ''}. Give more context, "
            "or an '@@' line with the function or class it is in. Nothing was changed.",
            path=self._shown,
            patch_line=hunk.patch_line,
            lines=places[:_SHOWN_CANDIDATES],
        )

    def _anchor_missing(self, hunk: Hunk, anchor: str) -> Refused:
        near = self._near_lines(anchor)
        return Refused(
            "anchor_not_found",
            f"{self._shown} has no line '{anchor}' to anchor the hunk at line {hunk.patch_line} of the "
            "patch. Nothing was changed.",
            path=self._shown,
            patch_line=hunk.patch_line,
            candidates=near,
        )

    def _not_found(self, hunk: Hunk, scopes: list[list[_Region]]) -> Refused:
        where = " at the end of the file" if hunk.at_end else " after its @@ lines" if len(scopes) > 1 else ""
        return Refused(
            "hunk_not_found",
            f"{self._shown}: the old lines of the hunk at line {hunk.patch_line} of the patch are not "
            f"there{where}. Read the file again and copy its lines. Nothing was changed.",
            path=self._shown,
            patch_line=hunk.patch_line,
            candidates=self._nearest(hunk),
        )

    def _nearest(self, hunk: Hunk) -> list[dict[str, object]]:
        """The places where most of the hunk's old lines are, each with its first difference."""
        wanted = [
            self._hunk_key(line, Level.INDENTATION) for line in hunk.lines if line.kind is not LineKind.ADDED
        ]
        keys = self._file_keys(Level.INDENTATION)
        where: dict[str, list[int]] = {}
        for index, key in enumerate(keys):
            where.setdefault(key, []).append(index)
        votes = Counter(
            index - offset
            for offset, key in enumerate(wanted)
            if key
            for index in where.get(key, ())[:_SEARCHED_LINES]
            if index >= offset
        )
        if not votes:
            return self._near_lines(next((key for key in wanted if key), ""))
        nearest: list[dict[str, object]] = []
        for start, same in votes.most_common(3):
            offset = next(
                (at for at, key in enumerate(wanted) if keys[start + at : start + at + 1] != [key]), 0
            )
            nearest.append(
                {"line": start + 1, "matching_lines": same, **self._shown_line(start + offset, "differs_at")}
            )
        return nearest

    def _near_lines(self, text: str) -> list[dict[str, object]]:
        keys = self._file_keys(Level.INDENTATION)[:_SEARCHED_LINES]
        close = get_close_matches(text[:200], keys, n=3) if text else []
        return [self._shown_line(keys.index(key), "line") for key in close]

    def _shown_line(self, index: int, name: str) -> dict[str, object]:
        if index >= self._count:
            return {name: index + 1, "file_has": "(end of file)"}
        return {name: index + 1, "file_has": printable_name(line_body(self._file.lines[index])[:200])}


def _occurrences(keys: list[str], wanted: list[str], region: _Region) -> Iterator[int]:
    size = len(wanted)
    for start in range(region.start, region.end - size + 1):
        if keys[start] == wanted[0] and keys[start : start + size] == wanted:
            yield start


def _without_separators(lines: tuple[HunkLine, ...]) -> Iterator[tuple[HunkLine, ...]]:
    """The lines as they are, then with ever fewer of the bare empty lines at their end."""
    yield lines
    while lines and lines[-1].bare:
        lines = lines[:-1]
        yield lines

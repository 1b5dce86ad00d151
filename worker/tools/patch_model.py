"""What a patch asks for, whichever format it was written in."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from worker.tools.refusal import Refused


class LineKind(StrEnum):
    """What a hunk does with a line."""

    CONTEXT = " "
    REMOVED = "-"
    ADDED = "+"


@dataclass(frozen=True, slots=True)
class HunkLine:
    """One line of a hunk.

    Attributes:
        kind: context, removed or added.
        text: without the newline; a carriage return belongs to it.
        newline: False when the patch says that the file ends here without a newline.
        bare: an empty line of the patch, without even the blank of a context line; at the end of a hunk it
            may be a mere separator.
    """

    kind: LineKind
    text: str
    newline: bool = True
    bare: bool = False

    @property
    def full(self) -> str:
        """The text with its newline."""
        return self.text + "\n" if self.newline else self.text


@dataclass(frozen=True, slots=True)
class Hunk:
    """A change to one place of a file.

    Attributes:
        lines: in order.
        patch_line: where the hunk begins in the patch, 1-based.
        anchors: lines of the file after which the place lies, outermost first.
        at_end: the old lines are the file's last ones.
        old_start: the line number that the patch states, 1-based.
        states_endings: the format says exactly how lines end, as unified diffs do.
    """

    lines: tuple[HunkLine, ...]
    patch_line: int
    anchors: tuple[str, ...] = ()
    at_end: bool = False
    old_start: int | None = None
    states_endings: bool = False

    @property
    def says_no_newline(self) -> bool:
        """Whether the patch speaks about a missing final newline."""
        return any(not line.newline for line in self.lines)


class Action(StrEnum):
    """What happens to a file."""

    ADD = "add"
    UPDATE = "update"
    DELETE = "delete"
    COPY = "copy"


@dataclass(frozen=True, slots=True)
class FileEdit:
    """One file's part of a patch.

    Attributes:
        action: what happens.
        path: the file; the source of a move or copy.
        patch_line: where this part begins in the patch, 1-based.
        hunks: the changes of an update, copy, or delete that shows what is deleted.
        content: the text of a new file.
        target: the new path of a move or copy.
        executable: the mode that the patch asks for, if any.
    """

    action: Action
    path: str
    patch_line: int
    hunks: tuple[Hunk, ...] = ()
    content: str = ""
    target: str | None = None
    executable: bool | None = None


def bad_patch(line: int, message: str) -> Refused:
    """The refusal for a patch that can't be understood, at a 1-based line of it."""
    return Refused("bad_patch", f"Line {line} of the patch: {message}", patch_line=line)

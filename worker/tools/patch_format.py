"""Reads the `*** Begin Patch` format."""

from __future__ import annotations

import re
from dataclasses import replace

from worker.tools.patch_model import Action, FileEdit, Hunk, HunkLine, LineKind, bad_patch

BEGIN = "*** Begin Patch"
END = "*** End Patch"
_ADD = "*** Add File:"
_DELETE = "*** Delete File:"
_UPDATE = "*** Update File:"
_MOVE = "*** Move to:"
_END_OF_FILE = "*** End of File"
_NO_NEWLINE = "\\ No newline at end of file"
_NUMBERED = re.compile(r"^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@.*$")


def parse_patch(lines: list[str]) -> list[FileEdit]:
    """Read the parts of a patch, in order.

    Raises:
        Refused: it is cut off, or has a line that belongs nowhere; the message names the line.
    """
    return _Reader(lines).edits()


class _Reader:
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0

    @property
    def _line(self) -> str:
        if self._at >= len(self._lines):
            raise bad_patch(len(self._lines), f"the patch ends without '{END}'; send it whole.")
        return self._lines[self._at]

    def edits(self) -> list[FileEdit]:
        while not self._line.strip():
            self._at += 1
        if self._line.strip() != BEGIN:
            raise bad_patch(self._at + 1, f"text before '{BEGIN}'.")
        self._at += 1
        edits: list[FileEdit] = []
        while self._line.rstrip() != END:
            if self._line.strip():
                edits.append(self._edit())
            else:
                self._at += 1
        for number, line in enumerate(self._lines[self._at + 1 :], self._at + 2):
            if line.strip():
                raise bad_patch(number, f"text after '{END}'. Put all changes into one patch.")
        if not edits:
            raise bad_patch(self._at + 1, "the patch has no file in it.")
        return edits

    def _edit(self) -> FileEdit:
        line, number = self._line, self._at + 1
        for start, read in ((_ADD, self._add), (_DELETE, self._delete), (_UPDATE, self._update)):
            if line.startswith(start):
                path = line.removeprefix(start).strip()
                if not path:
                    raise bad_patch(number, f"a path must follow '{start}'.")
                self._at += 1
                return read(path, number)
        raise bad_patch(
            number, f"expected '{_ADD}', '{_DELETE}', '{_UPDATE}' or '{END}', found '{line[:80]}'."
        )

    def _delete(self, path: str, number: int) -> FileEdit:
        return FileEdit(Action.DELETE, path, number)

    def _add(self, path: str, number: int) -> FileEdit:
        content: list[str] = []
        blanks = 0
        ending = "\n"
        while not self._line.startswith("*** "):
            line = self._line
            if line.startswith("+"):
                content += [""] * blanks
                blanks = 0
                content.append(line[1:])
            elif line == _NO_NEWLINE:
                ending = ""
            elif not line.strip():
                blanks += 1
            else:
                raise bad_patch(self._at + 1, "every line of a new file begins with '+'.")
            self._at += 1
        return FileEdit(Action.ADD, path, number, content="\n".join(content) + ending if content else "")

    def _update(self, path: str, number: int) -> FileEdit:
        target = None
        if self._line.startswith(_MOVE):
            target = self._line.removeprefix(_MOVE).strip()
            if not target:
                raise bad_patch(self._at + 1, f"a path must follow '{_MOVE}'.")
            self._at += 1
        hunks: list[Hunk] = []
        while not self._section_ends():
            if self._line.strip() or hunks:
                hunks.append(self._hunk())
            else:
                self._at += 1
        if not hunks and target is None:
            raise bad_patch(number, "an update needs at least one hunk.")
        return FileEdit(Action.UPDATE, path, number, hunks=tuple(hunks), target=target)

    def _section_ends(self) -> bool:
        line = self._line
        return line.startswith("*** ") and line.rstrip() != _END_OF_FILE

    def _hunk(self) -> Hunk:
        number = self._at + 1
        anchors: list[str] = []
        while self._line.startswith("@@"):
            anchor = "" if _NUMBERED.match(self._line) else self._line[2:].strip().removesuffix(" @@")
            if anchor and anchor != "@@":
                anchors.append(anchor)
            self._at += 1
        lines: list[HunkLine] = []
        while not self._line.startswith("@@") and not self._line.startswith("*** "):
            self._body_line(lines)
            self._at += 1
        at_end = self._line.rstrip() == _END_OF_FILE
        if at_end:
            self._at += 1
            while not self._line.strip():
                self._at += 1
        if not any(line.text or line.kind is not LineKind.CONTEXT for line in lines):
            raise bad_patch(number, "this hunk has no lines.")
        return Hunk(tuple(lines), number, tuple(anchors), at_end=at_end)

    def _body_line(self, lines: list[HunkLine]) -> None:
        line = self._line
        if line == _NO_NEWLINE and lines:
            lines[-1] = replace(lines[-1], newline=False)
        elif line[:1] in {" ", "+", "-"}:
            lines.append(HunkLine(LineKind(line[0]), line[1:]))
        elif not line.strip():
            lines.append(HunkLine(LineKind.CONTEXT, line, bare=True))
        else:
            raise bad_patch(
                self._at + 1,
                f"a line of a hunk begins with ' ', '-' or '+' (or '@@', '***'), found '{line[:80]}'.",
            )

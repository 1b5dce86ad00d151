"""Reads unified diffs, with or without git's headers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from worker.tools.patch_model import Action, FileEdit, Hunk, HunkLine, LineKind, bad_patch

_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_GIT = "diff --git "
_NOWHERE = "/dev/null"
_QUOTED = re.compile(r'^"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\([0-7]{3}|.)")
_LETTERS = {"n": 10, "t": 9, "r": 13, "a": 7, "b": 8, "f": 12, "v": 11, '"': 34, "\\": 92}
_PREFIXES = {("a/", "b/"), ("i/", "w/"), ("c/", "i/"), ("c/", "w/"), ("o/", "w/")}


def looks_unified(lines: list[str]) -> bool:
    """Whether a text holds a file header of a unified diff."""
    return any(line.startswith(_GIT) or _starts_file(lines, number) for number, line in enumerate(lines))


def parse_unified(lines: list[str]) -> list[FileEdit]:
    """Read the files of a diff, in order; text between them is passed over.

    Raises:
        Refused: a header or hunk that can't be understood, or binary changes.
    """
    return _Reader(lines).edits()


def _starts_file(lines: list[str], at: int) -> bool:
    return lines[at].startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ ")


@dataclass(slots=True)
class _Header:
    patch_line: int
    git_paths: tuple[str, str] | None = None
    old: str | None = None
    new: str | None = None
    created: bool = False
    deleted: bool = False
    renamed: bool = False
    copied: bool = False
    executable: bool | None = None
    hunks: list[Hunk] = field(default_factory=list[Hunk])

    def edit(self) -> FileEdit:
        old, new = self._paths()
        hunks = tuple(self.hunks)
        if self.created or self.old == _NOWHERE:
            return FileEdit(
                Action.ADD, new, self.patch_line, content=self._content(), executable=self.executable or None
            )
        if self.deleted or self.new == _NOWHERE:
            return FileEdit(Action.DELETE, old, self.patch_line, hunks=hunks)
        if not (hunks or self.renamed or self.copied or self.executable is not None):
            raise bad_patch(self.patch_line, "this file has no hunks.")
        action = Action.COPY if self.copied else Action.UPDATE
        target = new if self.renamed or self.copied or old != new else None
        return FileEdit(action, old, self.patch_line, hunks=hunks, target=target, executable=self.executable)

    def _paths(self) -> tuple[str, str]:
        old, new = self.old, self.new
        if old is None or new is None:
            if self.git_paths is None:
                raise bad_patch(self.patch_line, "this file has no paths.")
            old, new = self.git_paths
        elif not (self.renamed or self.copied):
            old, new = _without_prefixes(old, new)
        return (new, new) if old == _NOWHERE else (old, old) if new == _NOWHERE else (old, new)

    def _content(self) -> str:
        lines = [line for hunk in self.hunks for line in hunk.lines]
        if any(line.kind is not LineKind.ADDED for line in lines if not line.bare):
            raise bad_patch(self.patch_line, "a new file has added lines only.")
        return "".join(line.full for line in lines if line.kind is LineKind.ADDED)


class _Reader:
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0

    def edits(self) -> list[FileEdit]:
        headers: list[_Header] = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.startswith(_GIT):
                headers.append(_Header(self._at + 1, git_paths=_git_paths(line.removeprefix(_GIT))))
                self._at += 1
                self._extended(headers[-1])
            elif _starts_file(self._lines, self._at):
                headers.append(_Header(self._at + 1))
                self._names(headers[-1])
            elif _HUNK.match(line):
                if not headers:
                    raise bad_patch(self._at + 1, "a hunk without '---' and '+++' lines before it.")
                headers[-1].hunks.append(self._hunk())
            elif line.startswith("@@"):
                raise bad_patch(self._at + 1, "a hunk begins '@@ -start,count +start,count @@'.")
            else:
                self._at += 1
        return [header.edit() for header in headers]

    def _extended(self, header: _Header) -> None:
        """Read git's header lines up to the first hunk or the next file."""
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if _starts_file(self._lines, self._at):
                self._names(header)
                return
            if not line.strip() or line.startswith((_GIT, "@@")):
                return
            self._header_line(header, line)
            self._at += 1

    def _header_line(self, header: _Header, line: str) -> None:
        word, _, value = line.rpartition(" ")
        if line.startswith(("GIT binary patch", "Binary files ")):
            raise bad_patch(self._at + 1, "binary changes can't be applied; write the file with shell.")
        if word in {"new file mode", "new mode", "deleted file mode"}:
            if value.startswith(("12", "16")):
                raise bad_patch(self._at + 1, "links and submodules can't be patched; use shell.")
            header.created |= word == "new file mode"
            header.deleted |= word == "deleted file mode"
            header.executable = value.endswith("755") if word != "deleted file mode" else None
        for start in ("rename from ", "copy from "):
            if line.startswith(start):
                header.old = _path(line.removeprefix(start))
                header.renamed |= start[0] == "r"
                header.copied |= start[0] == "c"
        for start in ("rename to ", "copy to "):
            if line.startswith(start):
                header.new = _path(line.removeprefix(start))

    def _names(self, header: _Header) -> None:
        old, new = self._lines[self._at][4:], self._lines[self._at + 1][4:]
        if not (header.renamed or header.copied):
            header.old, header.new = _path(old), _path(new)
        self._at += 2

    def _hunk(self) -> Hunk:
        number = self._at + 1
        match = _HUNK.match(self._lines[self._at])
        assert match is not None
        old_left, new_left = int(match[2] or 1), int(match[4] or 1)
        self._at += 1
        lines: list[HunkLine] = []
        while self._at < len(self._lines) and not self._hunk_ends(counted=old_left <= 0 and new_left <= 0):
            line = self._lines[self._at]
            if line.startswith("\\"):
                lines[-1:] = [replace(last, newline=False) for last in lines[-1:]]
            else:
                kind = LineKind(line[0]) if line.strip("\r") else LineKind.CONTEXT
                lines.append(
                    HunkLine(kind, line[1:] if line.strip("\r") else line, bare=not line.strip("\r"))
                )
                old_left -= kind is not LineKind.ADDED
                new_left -= kind is not LineKind.REMOVED
            self._at += 1
        if not lines:
            raise bad_patch(number, "this hunk has no lines.")
        return Hunk(tuple(lines), number, old_start=int(match[1]), states_endings=True)

    def _hunk_ends(self, *, counted: bool) -> bool:
        """Whether the line at hand is behind the hunk; models often state wrong counts."""
        line = self._lines[self._at]
        if line.startswith("\\"):
            return False
        if counted and (not line.strip() or line == "-- " or _starts_file(self._lines, self._at)):
            return True
        if not line.strip("\r"):
            return False
        if line[0] not in " +-":
            return True
        header_next = _starts_file(self._lines, self._at) and self._at + 2 < len(self._lines)
        return header_next and _HUNK.match(self._lines[self._at + 2]) is not None


def _path(text: str) -> str:
    quoted = _QUOTED.match(text)
    if quoted:
        return _unquoted(quoted[1])
    return text.split("\t", 1)[0].rstrip("\r") if "\t" in text else text.rstrip()


def _unquoted(text: str) -> str:
    """Undo git's C-style quoting; its octal escapes are bytes of UTF-8."""

    def escaped(match: re.Match[str]) -> str:
        code = match[1]
        value = int(code, 8) if len(code) == 3 else _LETTERS.get(code, ord(code))
        return chr(value) if value < 0x80 else chr(0xDC00 + value)

    raw = _ESCAPE.sub(escaped, text).encode("utf-8", "surrogateescape")
    return raw.decode("utf-8", "backslashreplace")


def _git_paths(text: str) -> tuple[str, str] | None:
    """The paths of a `diff --git` line, where both are the same but for their prefixes."""
    quoted = _QUOTED.match(text)
    if quoted:
        both = (_path(text), _path(text[quoted.end() + 1 :]))
        return _without_prefixes(*both)
    middle = len(text) // 2
    if len(text) % 2 and text[middle] == " ":
        old, new = _without_prefixes(text[:middle], text[middle + 1 :])
        if old == new:
            return old, new
    return None


def _without_prefixes(old: str, new: str) -> tuple[str, str]:
    if old == _NOWHERE:
        return old, new.split("/", 1)[1] if new.startswith(("b/", "w/", "i/")) else new
    if new == _NOWHERE:
        return old.split("/", 1)[1] if old.startswith(("a/", "i/", "c/", "o/")) else old, new
    if (old[:2], new[:2]) in _PREFIXES:
        return old[2:], new[2:]
    return old, new

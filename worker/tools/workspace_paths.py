"""Which paths the tools may touch.

One policy for all five tools: a path is relative to the workspace, or absolute and inside it; it is
resolved with its links first, and what then lies outside is refused. `read_file` may also read the
directory that holds long outputs.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from worker.tools.file_kind import FileKind
from worker.tools.refusal import Refused

_ESCAPED_BYTE = re.compile(r"\\x([0-9a-f]{2})")
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_PATH_BYTES = 4096


@dataclass(frozen=True, slots=True)
class WorkspacePath:
    """A path that was checked.

    Attributes:
        real: absolute, without links.
        shown: how it is spelled to the model; relative to the workspace where possible.
    """

    real: Path
    shown: str


def printable_name(name: str) -> str:
    r"""A file name as valid Unicode that `Workspace.resolve` takes back.

    Bytes that are no UTF-8 become `\xNN`. A backslash that only looks like the start of such an escape is
    written `\x5c`, so two names never share a spelling.
    """
    plain = _ESCAPED_BYTE.sub(lambda match: "\\x5cx" + match[1], name)
    return _SURROGATE.sub(lambda match: f"\\x{ord(match[0]) & 0xFF:02x}", plain)


def _unescaped_name(text: str) -> str:
    def byte(match: re.Match[str]) -> str:
        value = int(match[1], 16)
        if value == ord("\\"):
            return "\\"
        return chr(0xDC00 + value) if value > 0x7F else match[0]

    return _ESCAPED_BYTE.sub(byte, text)


class Workspace:
    """The directory tree that belongs to the job.

    Args:
        root: its top; made absolute, links resolved.
        readable: further directories that may be read, never written.
    """

    def __init__(self, root: Path, readable: tuple[Path, ...] = ()) -> None:
        self.root = Path(os.path.realpath(root))
        self._readable = tuple(Path(os.path.realpath(path)) for path in readable)

    def resolve(self, text: str) -> WorkspacePath:
        """Follow every link of a path and check that it ends in the workspace; it need not exist.

        Raises:
            Refused: unusable text, a loop of links, or a place outside.
        """
        return self._checked(text, (self.root,))

    def resolve_readable(self, text: str) -> WorkspacePath:
        """As `resolve`, for reading: the directories that may only be read are fine too."""
        return self._checked(text, (self.root, *self._readable))

    def resolve_entry(self, text: str) -> WorkspacePath:
        """As `resolve`, but names the directory entry itself when the last part is a link.

        The link's target must lie inside as well.
        """
        self._checked(text, (self.root,), loops_allowed=True)
        given = self._absolute(text)
        real = Path(os.path.realpath(given.parent)) / given.name
        if given.name == ".." or not self._inside(real, (self.root,)):
            return self.resolve(text)
        return WorkspacePath(real, self.show(real))

    def show(self, real: Path) -> str:
        """The spelling of a resolved path for the model."""
        inside = real.is_relative_to(self.root)
        return printable_name(str(real.relative_to(self.root) if inside else real))

    def open_file(self, path: WorkspacePath) -> BinaryIO:
        """Open a resolved path for reading, if it is a regular file.

        Never blocks on a FIFO or device, and looks again after opening, so that a link put in its place
        meanwhile does not lead outside.

        Raises:
            Refused: it is missing, unreadable, no regular file, or outside after all.
        """
        try:
            kind = FileKind.of_mode(path.real.lstat().st_mode)
            if kind is not FileKind.FILE:
                raise not_a_file(path.shown, kind)
            flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC
            stream = os.fdopen(os.open(path.real, flags), "rb")
        except OSError as error:
            raise Refused.by_system(error, path.shown) from error
        try:
            self._check_opened(stream.fileno(), path)
        except Refused:
            stream.close()
            raise
        return stream

    def _check_opened(self, descriptor: int, path: WorkspacePath) -> None:
        kind = FileKind.of_mode(os.fstat(descriptor).st_mode)
        if kind is not FileKind.FILE:
            raise not_a_file(path.shown, kind)
        if not self._inside(opened_path(descriptor), (self.root, *self._readable)):
            raise _outside(path.shown)

    def _checked(self, text: str, roots: tuple[Path, ...], *, loops_allowed: bool = False) -> WorkspacePath:
        real = Path(os.path.realpath(self._absolute(text)))
        if not self._inside(real, roots):
            raise _outside(text)
        try:
            loops = real.is_symlink()
        except OSError as error:
            raise Refused.by_system(error, printable_name(text)) from error
        if loops and not loops_allowed:
            raise Refused.by_system(OSError(errno.ELOOP, ""), printable_name(text))
        return WorkspacePath(real, self.show(real))

    def _absolute(self, text: str) -> Path:
        if not text or "\0" in text or _SURROGATE.search(text):
            shown = printable_name(text.replace("\0", "\\0"))
            raise Refused("bad_path", f"The path '{shown}' is empty or holds NUL or broken Unicode.")
        if len(text.encode()) > _MAX_PATH_BYTES:
            raise Refused("bad_path", f"The path has more than {_MAX_PATH_BYTES} bytes.")
        literal = self.root / text
        unescaped = self.root / _unescaped_name(text)
        try:
            return unescaped if os.path.lexists(unescaped) else literal
        except OSError as error:
            raise Refused.by_system(error, printable_name(text)) from error

    @staticmethod
    def _inside(real: Path, roots: tuple[Path, ...]) -> bool:
        return any(real.is_relative_to(root) for root in roots)


def opened_path(descriptor: int) -> Path:
    """Where an open file really lies, as the kernel says."""
    return Path(f"/proc/self/fd/{descriptor}").readlink()


def not_a_file(shown: str, kind: FileKind) -> Refused:
    """The refusal for an entry that can't be read or written as a file."""
    if kind is FileKind.DIRECTORY:
        return Refused("is_a_directory", f"{shown} is a directory, not a file; use list_dir.", path=shown)
    return Refused("not_a_file", f"{shown} is not a regular file (it is a {kind}).", path=shown, type=kind)


def existing(path: WorkspacePath) -> os.stat_result | None:
    """The state of a resolved path, or None when nothing is there.

    Raises:
        Refused: the path can't be looked at.
    """
    try:
        return path.real.lstat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Refused.by_system(error, path.shown) from error


def existing_file(path: WorkspacePath) -> os.stat_result | None:
    """As `existing`, and refused unless it is a regular file that may be written."""
    found = existing(path)
    if found is None:
        return None
    kind = FileKind.of_mode(found.st_mode)
    if kind is not FileKind.FILE:
        raise not_a_file(path.shown, kind)
    if not os.access(path.real, os.W_OK):
        mode = stat.S_IMODE(found.st_mode)
        raise Refused("permission_denied", f"{path.shown} is read-only (mode {mode:04o}).", path=path.shown)
    return found


def _outside(text: str) -> Refused:
    return Refused(
        "outside_workspace",
        f"{printable_name(text)} is outside the workspace. Use a path inside it; links may not leave it.",
        path=printable_name(text),
    )

"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from worker.tools.refusal import Refused
from worker.tools.workspace_paths import WorkspacePath, opened_path

_PERMISSIONS = 0o777
_EXECUTE = 0o111


class StagedFile:
    """New content that lies beside its target under a temporary name, synced to disk.

    All steps go through a descriptor of the directory, so nobody can turn the path into a link to
    somewhere else in between.

    Attributes:
        directory: descriptor of the target's directory.
        name: the target's name in it.
    """

    def __init__(self, directory: int, name: str) -> None:
        self.directory = directory
        self.name = name
        self._temporary = f".portside-{secrets.token_hex(8)}.tmp"

    def write(self, data: bytes, *, keep: os.stat_result | None, executable: bool | None) -> None:
        """Write and sync the content; `keep` gives mode and owner, else the umask does."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        first_mode = 0o600 if keep else 0o666
        descriptor = os.open(self._temporary, flags, first_mode, dir_fd=self.directory)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            _take_over(descriptor, keep, executable=executable)
            os.fsync(descriptor)

    def replace(self) -> None:
        """Put it in the target's place."""
        os.rename(self._temporary, self.name, src_dir_fd=self.directory, dst_dir_fd=self.directory)

    def create(self) -> None:
        """Give it the target's name if that is free.

        Raises:
            FileExistsError: something has the name.
        """
        os.link(self._temporary, self.name, src_dir_fd=self.directory, dst_dir_fd=self.directory)
        self.discard()

    def discard(self) -> None:
        """Remove what was not put in place."""
        with suppress(FileNotFoundError):
            os.unlink(self._temporary, dir_fd=self.directory)


def _take_over(descriptor: int, keep: os.stat_result | None, *, executable: bool | None) -> None:
    made = os.fstat(descriptor)
    mode = made.st_mode
    if keep is not None:
        if (keep.st_uid, keep.st_gid) != (made.st_uid, made.st_gid):
            # Only root may give files away; for anybody else the writer becomes the owner.
            with suppress(PermissionError):
                os.fchown(descriptor, keep.st_uid, keep.st_gid)
        mode = keep.st_mode
    if executable is not None:
        readable = (mode & 0o444) >> 2
        mode = mode | readable if executable else mode & ~_EXECUTE
    os.fchmod(descriptor, stat.S_IMODE(mode) & _PERMISSIONS)


def open_parent(path: WorkspacePath, undo: ExitStack) -> int:
    """Open the directory of a resolved path, made if missing; `undo` removes what was made.

    Raises:
        Refused: a part of it is a file, or became a link meanwhile.
        OSError: it can't be made.
    """
    parent = path.real.parent
    for directory in reversed([parent, *parent.parents]):
        if not directory.exists():
            directory.mkdir(exist_ok=True)
            undo.callback(_remove_empty, directory)
    descriptor = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    if opened_path(descriptor) != parent:
        os.close(descriptor)
        raise Refused("outside_workspace", f"{path.shown} became a link while it was written.")
    return descriptor


def _remove_empty(directory: Path) -> None:
    # Somebody else may have put a file there meanwhile, or removed it.
    with suppress(OSError):
        directory.rmdir()


def write_atomically(path: WorkspacePath, data: bytes, *, keep: os.stat_result | None, create: bool) -> None:
    """Give a file new content in one step.

    Args:
        path: where; missing parents are made.
        data: the whole content.
        keep: the state of the file that is replaced; its mode and owner stay.
        create: fail when the name is taken.

    Raises:
        OSError: it did not work; the old content stands and nothing new is left behind.
        Refused: the path changed meanwhile.
    """
    with ExitStack() as undo, ExitStack() as tidy:
        directory = open_parent(path, undo)
        tidy.callback(os.close, directory)
        staged = StagedFile(directory, path.real.name)
        tidy.callback(staged.discard)
        staged.write(data, keep=keep, executable=None)
        publish: Callable[[], None] = staged.create if create else staged.replace
        publish()
        os.fsync(directory)
        undo.pop_all()

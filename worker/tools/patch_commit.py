"""Writes a worked-out patch: all of it or nothing."""

from __future__ import annotations

import os
import secrets
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from worker.tools.atomic_write import StagedFile, open_parent
from worker.tools.patch_plan import FileState
from worker.tools.refusal import Refused


def commit(files: list[FileState]) -> None:
    """Bring every file into its new state; on any failure put everything back.

    Content is staged beside its target before the first visible change. A file that somebody else changed
    since it was read, or created where a new one goes, fails the whole.

    Raises:
        Refused: a file changed meanwhile, or the system refused; nothing was changed.
    """
    changed = [state for state in files if state.before is not None or state.data is not None]
    deleted = [state for state in changed if state.data is None]
    written = [state for state in changed if state.data is not None]
    ancestors = {parent for state in written for parent in state.path.real.parents}
    in_the_way = [state for state in deleted if state.path.real in ancestors]
    with ExitStack() as tidy, ExitStack() as undo:
        steps = _Steps(tidy, undo)
        for state in in_the_way:
            steps.delete(state)
        staged = [(state, steps.stage(state)) for state in written]
        for state in deleted:
            if state not in in_the_way:
                steps.delete(state)
        for state, file in staged:
            steps.publish(state, file)
        undo.pop_all()
        steps.forget_backups()


@dataclass(slots=True)
class _Steps:
    tidy: ExitStack
    undo: ExitStack
    _backups: list[Path] = field(default_factory=list[Path])

    def stage(self, state: FileState) -> StagedFile:
        assert state.data is not None
        try:
            directory = open_parent(state.path, self.undo)
            self.tidy.callback(os.close, directory)
            file = StagedFile(directory, state.path.real.name)
            self.undo.callback(file.discard)
            file.write(state.data, keep=state.keep, executable=state.executable)
        except OSError as error:
            raise Refused.by_system(error, state.path.shown) from error
        return file

    def delete(self, state: FileState) -> None:
        self._require_unchanged(state)
        self._set_aside(state)

    def publish(self, state: FileState, file: StagedFile) -> None:
        try:
            if state.before is not None:
                self._require_unchanged(state)
                backup = self._backup_path(state)
                os.link(state.path.real, backup, follow_symlinks=False)
                self._backups.append(backup)
                self.undo.callback(os.replace, backup, state.path.real)
                file.replace()
            else:
                file.create()
                self.undo.callback(os.unlink, state.path.real)
            os.fsync(file.directory)
        except OSError as error:
            raise Refused.by_system(error, state.path.shown) from error

    def forget_backups(self) -> None:
        for backup in self._backups:
            backup.unlink(missing_ok=True)

    def _set_aside(self, state: FileState) -> None:
        backup = self._backup_path(state)
        try:
            state.path.real.rename(backup)
        except OSError as error:
            raise Refused.by_system(error, state.path.shown) from error
        self._backups.append(backup)
        self.undo.callback(os.replace, backup, state.path.real)

    @staticmethod
    def _backup_path(state: FileState) -> Path:
        return state.path.real.with_name(f".portside-{secrets.token_hex(8)}.bak")

    @staticmethod
    def _require_unchanged(state: FileState) -> None:
        assert state.before is not None
        try:
            now = state.path.real.lstat()
        except OSError as error:
            raise Refused.by_system(error, state.path.shown) from error
        before = state.before
        if (now.st_ino, now.st_size, now.st_mtime_ns) != (before.st_ino, before.st_size, before.st_mtime_ns):
            raise Refused(
                "changed_meanwhile", f"{state.path.shown} was changed by somebody else; read it again."
            )

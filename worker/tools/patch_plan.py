"""What a patch makes of the workspace, worked out before anything is written."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from worker.tools.file_kind import FileKind
from worker.tools.patch_edit import edit_file
from worker.tools.patch_levels import Level
from worker.tools.patch_model import Action, FileEdit, Hunk
from worker.tools.refusal import Refused
from worker.tools.text_file import TextFile, split_lines
from worker.tools.workspace_paths import (
    Workspace,
    WorkspacePath,
    existing,
    existing_file,
    printable_name,
)

MAX_FILE_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class FileState:
    """A path before and after the patch.

    Attributes:
        path: where.
        before: its state on disk; None when there is nothing.
        data: the content after the patch; None when nothing is left.
        keep: whose mode and owner the content gets; None for a new file.
        executable: the mode that the patch asks for, if any.
    """

    path: WorkspacePath
    before: os.stat_result | None
    data: bytes | None
    keep: os.stat_result | None = None
    executable: bool | None = None


class PatchPlan:
    """Applies a patch's parts in order to a picture of the files.

    Attributes:
        files: every touched path.
        report: per part of the patch, what it does, for the model.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.files: dict[Path, FileState] = {}
        self.report: list[dict[str, Any]] = []

    def take(self, edit: FileEdit) -> None:
        """Work out one part.

        Raises:
            Refused: it can't be applied; the message says why.
        """
        steps = {
            Action.ADD: self._add,
            Action.DELETE: self._delete,
            Action.UPDATE: self._update,
            Action.COPY: self._update,
        }
        try:
            steps[edit.action](edit)
        except Refused as refused:
            shown = printable_name(edit.path)
            if shown not in refused.message:
                refused.message = f"{shown}: {refused.message}"
            raise

    def _add(self, edit: FileEdit) -> None:
        path = self._file_path(edit.path)
        self._require_free(path, "Use Update File to change it.")
        earlier = self.files.get(path.real)
        keep = earlier.keep if earlier else None
        before = earlier.before if earlier else None
        self.files[path.real] = FileState(path, before, edit.content.encode(), keep, edit.executable)
        action = "added" if before is None else "updated"
        self._tell(path, action, added=len(split_lines(edit.content, cr_ends_lines=False)))

    def _delete(self, edit: FileEdit) -> None:
        path = self._workspace.resolve_entry(edit.path)
        found = self._look(path)
        if found is not None and found.keep and FileKind.of_mode(found.keep.st_mode) is FileKind.LINK:
            self.files[path.real] = replace(found, data=None)
            self._tell(path, "deleted")
            return
        state = self._existing(self._file_path(edit.path))
        lines = TextFile.decode(state.data or b"").lines if edit.hunks else ()
        removed = len(lines)
        if edit.hunks and self._edited(state, edit.hunks)[0]:
            raise Refused("bad_patch", f"{path.shown}: the patch deletes the file but not all of its lines.")
        self.files[state.path.real] = replace(state, data=None)
        self._tell(state.path, "deleted", removed=removed)

    def _update(self, edit: FileEdit) -> None:
        source = self._existing(self._file_path(edit.path))
        data, added, removed, level = self._edited(source, edit.hunks)
        executable = source.executable if edit.executable is None else edit.executable
        if edit.target is None:
            if data == source.data and edit.executable is None:
                raise Refused("no_change", f"{source.path.shown}: the hunks change nothing.")
            self.files[source.path.real] = replace(source, data=data, executable=executable)
            self._tell(source.path, "updated", added=added, removed=removed, level=level)
            return
        target = self._file_path(edit.target)
        if target.real == source.path.real:
            raise Refused("same_path", f"{target.shown}: it is moved onto itself. Leave 'Move to' out.")
        self._refuse_link(edit.path)
        self._require_free(target, "Delete it first or choose another name.")
        there = self.files.get(target.real)
        before = there.before if there else None
        self.files[target.real] = FileState(target, before, data, source.keep, executable)
        action = "copied" if edit.action is Action.COPY else "moved"
        if action == "moved":
            self.files[source.path.real] = replace(source, data=None)
        self._tell(target, action, added=added, removed=removed, level=level, source=source.path)

    def _edited(self, state: FileState, hunks: tuple[Hunk, ...]) -> tuple[bytes, int, int, Level]:
        data = state.data or b""
        if not hunks:
            return data, 0, 0, Level.EXACT
        inner_returns = any("\r" in line.text[:-1] for hunk in hunks for line in hunk.lines)
        file = TextFile.decode(data, cr_ends_lines=not inner_returns)
        edited = edit_file(file, hunks, state.path.shown)
        return file.encode(edited.lines) if edited.lines else b"", edited.added, edited.removed, edited.level

    def _file_path(self, text: str) -> WorkspacePath:
        path = self._workspace.resolve(text)
        if text.endswith("/") or path.real == self._workspace.root:
            raise Refused("is_a_directory", f"{path.shown} names a directory; a patch changes files.")
        for parent in path.real.parents:
            above = self.files.get(parent)
            if above is not None and above.data is not None:
                raise Refused("not_a_directory", f"{path.shown}: {above.path.shown} is a file of this patch.")
        return path

    def _refuse_link(self, text: str) -> None:
        entry = self._workspace.resolve_entry(text)
        if entry.real.is_symlink():
            raise Refused(
                "is_a_link", f"{entry.shown} is a symbolic link; move the file it leads to, or use shell."
            )

    def _require_free(self, path: WorkspacePath, advice: str) -> None:
        planned = self.files.get(path.real)
        if planned is not None and planned.data is None:
            return
        found = None if planned else existing(path)
        if planned is None and found is None:
            return
        kind = FileKind.of_mode(found.st_mode) if found else FileKind.FILE
        raise Refused("already_exists", f"{path.shown} exists already ({kind}). {advice}", path=path.shown)

    def _existing(self, path: WorkspacePath) -> FileState:
        planned = self.files.get(path.real)
        if planned is not None and planned.data is not None:
            return planned
        found = existing_file(path) if planned is None else None
        if found is None:
            raise Refused("not_found", f"{path.shown} does not exist.", path=path.shown)
        if found.st_size > MAX_FILE_BYTES:
            raise Refused(
                "too_large", f"{path.shown} has {found.st_size} bytes; at most {MAX_FILE_BYTES} are patched."
            )
        with self._workspace.open_file(path) as stream:
            return FileState(path, found, stream.read(MAX_FILE_BYTES), found)

    def _look(self, path: WorkspacePath) -> FileState | None:
        """The state of a directory entry that is a link, or None."""
        found = existing(path)
        if found is None or FileKind.of_mode(found.st_mode) is not FileKind.LINK or path.real in self.files:
            return None
        return FileState(path, found, b"", found)

    def _tell(
        self,
        path: WorkspacePath,
        action: str,
        *,
        added: int = 0,
        removed: int = 0,
        level: Level = Level.EXACT,
        source: WorkspacePath | None = None,
    ) -> None:
        told: dict[str, Any] = {"path": path.shown, "action": action}
        if source is not None:
            told["from"] = source.shown
        told |= {"lines_added": added, "lines_removed": removed}
        if level is not Level.EXACT:
            told["matched"] = level
        self.report.append(told)

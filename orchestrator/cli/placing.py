"""New files put in the place of old ones: all of them, or none, also when the power goes in the middle.

Everything is written beside first, on the checkout's own file system. Then a journal says what is about to be
renamed. While the journal is there, what was renamed can be taken back; it is removed when all is in place.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import stat
import tarfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from orchestrator.cli.checkout import FOLDER, Stamp, Stamps
from orchestrator.cli.failures import CommandFailed

_JOURNAL = "journal.json"
_DRAFT = "journal.draft"
_BUFFER_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Change:
    """One path.

    Attributes:
        new: where its new file lies until it is in place; None when it is deleted.
        old: where its old file goes; None when there is none.
        stamp: of the new file, by which it is known again.
    """

    path: str
    new: str | None
    old: str | None
    stamp: Stamp | None


class Placing:
    """The changes of one directory; made by `placing`, which holds its lock."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._folder = directory / FOLDER

    def place(self, job_id: str, result: Path, deleted: Sequence[str], present: Stamps) -> None:
        """Write the files of a tar, and delete others; all, or none.

        Args:
            job_id: for the journal.
            result: files and links.
            deleted: paths that go.
            present: what was there when the result was made; what has changed since is not overwritten.

        Raises:
            CommandFailed: it can't be done; nothing was changed.
        """
        try:
            changes = self._stage(result, deleted, present)
            for change in changes:
                now = Stamp.of(self._directory / change.path)
                known = present.get(change.path)
                if now != known and not (known is None and now is not None and stat.S_ISDIR(now.mode)):
                    raise CommandFailed(
                        f"{change.path!r} was changed meanwhile; nothing was changed. Apply again"
                    )
            folders = self._missing_folders(changes)
            self._write_journal(job_id, changes, folders)
        except OSError as error:
            raise CommandFailed(
                f"{self._directory} can't be written: {error.strerror or error}; nothing was changed"
            ) from None
        try:
            self._rename(changes)
        except BaseException as error:
            self.undo()
            if isinstance(error, OSError):
                raise CommandFailed(
                    f"{error.filename or self._directory}: {error.strerror}; nothing was changed"
                ) from None
            raise
        (self._folder / _JOURNAL).unlink()
        self._remove_empty(changes)

    def undo(self) -> str | None:
        """Take back what a journal says was begun.

        Returns:
            The job whose apply was taken back; None when there was none.

        Raises:
            CommandFailed: a file was written to since; where both of its versions are.
        """
        journal = self._folder / _JOURNAL
        if not journal.exists():
            return None
        written = json.loads(journal.read_bytes())
        changes = [_change(one) for one in written["changes"]]
        edited = [change for change in reversed(changes) if not self._take_back(change)]
        for name in reversed(written["folders"]):
            with suppress(OSError):  # not made yet, or something else is in it
                (self._directory / name).rmdir()
        for change in changes:
            old = None if change.old is None or change in edited else self._folder / change.old
            if old is not None and os.path.lexists(old):
                (self._directory / change.path).parent.mkdir(parents=True, exist_ok=True)
                old.rename(self._directory / change.path)
        if edited:
            raise CommandFailed(
                f"an apply was cut off in {self._directory}, and {edited[0].path!r} was written to since; "
                f"all others were put back. {_earlier(edited[0])} in {self._folder}: "
                "remove that folder when you have what you need"
            )
        journal.unlink()
        return str(written["job_id"])

    def _take_back(self, change: Change) -> bool:
        """Move a new file out of its place again; False when it is not the file that was put there."""
        place = self._directory / change.path
        if change.new is None or os.path.lexists(self._folder / change.new):
            return True
        stamp = Stamp.of(place)
        if stamp is None:
            return True
        if stamp != change.stamp:
            return False
        place.rename(self._folder / change.new)
        return True

    def _stage(self, result: Path, deleted: Sequence[str], present: Stamps) -> list[Change]:
        for name in ("new", "old"):
            shutil.rmtree(
                self._folder / name, ignore_errors=True
            )  # of an apply that ended before its journal
            (self._folder / name).mkdir()
        changes: list[Change] = []
        with tarfile.open(result) as tar:
            for number, member in enumerate(tar):
                place = self._folder / f"new/{number}"
                _write(tar, member, place, present.get(member.name))
                old = f"old/{number}" if member.name in present else None
                changes.append(Change(member.name, f"new/{number}", old, Stamp.of(place)))
        gone = [Change(name, None, f"old/d{number}", None) for number, name in enumerate(deleted)]
        return [*gone, *changes]

    def _missing_folders(self, changes: Sequence[Change]) -> list[str]:
        """Folders that have to be made, the outermost first."""
        missing: dict[str, None] = {}
        for change in changes:
            for parent in list(Path(change.path).parents)[-2::-1]:
                if change.new is not None and not (self._directory / parent).is_dir():
                    missing[str(parent)] = None
        return list(missing)

    def _write_journal(self, job_id: str, changes: Sequence[Change], folders: Sequence[str]) -> None:
        draft = self._folder / _DRAFT
        with draft.open("w", encoding="ascii") as file:
            json.dump(
                {"job_id": job_id, "folders": folders, "changes": [asdict(change) for change in changes]},
                file,
            )
            file.flush()
            os.fsync(file.fileno())

    def _rename(self, changes: Sequence[Change]) -> None:
        (self._folder / _DRAFT).rename(self._folder / _JOURNAL)
        _sync(self._folder)
        for change in changes:
            if change.old is not None:
                (self._directory / change.path).rename(self._folder / change.old)
        for change in changes:
            place = self._directory / change.path
            if change.new is None:
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            if place.is_dir() and not place.is_symlink():
                for folder, _, _ in os.walk(place, topdown=False):
                    Path(folder).rmdir()
            if os.path.lexists(place):
                raise CommandFailed(f"{change.path!r} was made meanwhile; nothing was changed. Apply again")
            (self._folder / change.new).rename(place)

    def _remove_empty(self, changes: Sequence[Change]) -> None:
        """As git does: a folder goes with its last file."""
        for change in changes:
            for parent in list(Path(change.path).parents)[:-1] if change.new is None else ():
                try:
                    (self._directory / parent).rmdir()
                except OSError:
                    break


@contextmanager
def placing(directory: Path) -> Generator[Placing]:
    """The right to change a directory; what an earlier one left is to be undone first.

    Raises:
        CommandFailed: another apply is at work there, or the directory can't be written.
    """
    folder = directory / FOLDER
    try:
        with _locked(folder):
            yield Placing(directory)
    except OSError as error:
        raise CommandFailed(f"{directory} can't be written: {error.strerror}; nothing was changed") from None


@contextmanager
def _locked(folder: Path) -> Generator[None]:
    """The folder, made and held; at the end it goes, unless a journal in it is still needed."""
    folder.mkdir(mode=0o700, exist_ok=True)
    try:
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError:
        with suppress(OSError):  # somebody else's may be in it
            folder.rmdir()
        raise
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CommandFailed(f"another apply is at work in {folder.parent}; wait for its end") from None
        yield from _held(folder)
    finally:
        os.close(lock)


def _held(folder: Path) -> Generator[None]:
    try:
        (folder / ".gitignore").write_text("*\n")
        yield
    finally:
        if not (folder / _JOURNAL).exists():
            shutil.rmtree(folder, ignore_errors=True)


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, place: Path, before: Stamp | None) -> None:
    if member.issym():
        place.symlink_to(member.linkname)
        return
    source = tar.extractfile(member)
    assert source is not None
    runs = bool(member.mode & stat.S_IXUSR)
    handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o777 if runs else 0o666)
    with source, os.fdopen(handle, "wb") as file:
        shutil.copyfileobj(source, file, _BUFFER_BYTES)
        file.flush()
        os.fsync(file.fileno())  # the journal must not outlive it
        if before is not None and stat.S_ISREG(before.mode):
            os.fchmod(file.fileno(), _mode(before.mode, runs=runs))


def _mode(before: int, *, runs: bool) -> int:
    """The file's own permissions; whoever may read it may run it, or nobody."""
    kept = before & 0o666
    return kept | (kept & 0o444) >> 2 if runs else kept


def _earlier(change: Change) -> str:
    return (
        f"What was there before is {change.old}"
        if change.old
        else "Nothing was there before; what is left is"
    )


def _change(written: dict[str, Any]) -> Change:
    stamp = written["stamp"]
    return Change(written["path"], written["new"], written["old"], None if stamp is None else Stamp(**stamp))


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

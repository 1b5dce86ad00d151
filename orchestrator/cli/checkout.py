"""The files of a user's checkout that a patch concerns, as they are now, and what is in its way."""

from __future__ import annotations

import os
import re
import stat
import tarfile
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from orchestrator.cli.failures import CommandFailed

FOLDER = ".portside-apply"
"""Where an apply keeps its journal, in the checkout itself: renames never cross a file system."""

Stamps = Mapping[str, "Stamp"]


@dataclass(frozen=True, slots=True)
class Stamp:
    """What tells whether a file was written to since."""

    inode: int
    size: int
    mtime_ns: int
    mode: int

    @classmethod
    def of(cls, path: Path) -> Stamp | None:
        """Of a file or link; None when nothing is there.

        Raises:
            CommandFailed: it can't be looked at.
        """
        try:
            found = path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise CommandFailed(f"{path} can't be read: {error.strerror}; nothing was changed") from None
        return cls(found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode)


def pack_present(directory: Path, names: Iterable[str], tar: Path) -> dict[str, Stamp]:
    """Write the named files and links to a tar, and what stands in the place of a folder on the way to them.

    Returns:
        The stamp of everything in it.

    Raises:
        CommandFailed: a name leads out of the directory or into a repository's own files; one is neither file
            nor link; one can't be read.
    """
    stamps: dict[str, Stamp] = {}
    try:
        with tarfile.open(tar, "w", format=tarfile.PAX_FORMAT) as archive:
            for name in _standing(directory, names):
                stamp = Stamp.of(directory / name)
                if stamp is None or name in stamps or stat.S_ISDIR(stamp.mode):
                    continue
                if not (stat.S_ISREG(stamp.mode) or stat.S_ISLNK(stamp.mode)):
                    raise CommandFailed(f"{name!r} is neither a file nor a link here; nothing was changed")
                archive.add(directory / name, arcname=name, recursive=False, filter=_as_a_file)
                stamps[name] = stamp
    except OSError as error:
        raise CommandFailed(f"{directory} can't be read: {error}; nothing was changed") from None
    return stamps


def _as_a_file(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def _standing(directory: Path, names: Iterable[str]) -> Iterator[str]:
    """Each name, or what is no folder on the way to it."""
    for name in names:
        parts = PurePosixPath(name).parts
        git = any(map(_is_git, parts))
        if not parts or name.startswith("/") or ".." in parts or git or parts[0] == FOLDER:
            raise CommandFailed(
                f"the patch names {name!r}, which is no file of a workspace; nothing was changed"
            )
        yield next((str(one) for one in _above(name) if _blocks(directory / one)), name)


def _is_git(part: str) -> bool:
    """Whether some file system takes a name for `.git`: one without cases, NTFS or HFS+. As git does."""
    seen = "".join(char for char in part if unicodedata.category(char) != "Cf")
    plain = unicodedata.normalize("NFKC", seen).partition(":")[0].rstrip(". ").lower()
    return plain == ".git" or re.fullmatch(r"git~[0-9]+", plain) is not None


def _above(name: str) -> list[PurePosixPath]:
    """The folders of a name, the outermost first."""
    return list(PurePosixPath(name).parents)[-2::-1]


def _blocks(path: Path) -> bool:
    stamp = Stamp.of(path)
    return stamp is not None and not stat.S_ISDIR(stamp.mode)


def refuse_obstacles(directory: Path, written: Iterable[str], deleted: Collection[str]) -> None:
    """Look for what is in the way of files to be written.

    Raises:
        CommandFailed: a link or file stands where a folder has to be, or a folder with other files where a
            file has to be.
    """
    for name in written:
        for one in _above(name):
            if str(one) not in deleted and _blocks(directory / one):
                raise CommandFailed(f"{str(one)!r} is no folder here; nothing was changed")
        place = directory / name
        if place.is_dir() and not place.is_symlink():
            others = [one for one in _files_below(directory, name) if one not in deleted]
            if others:
                raise CommandFailed(
                    f"{name!r} is a folder here, with files such as {others[0]!r}; nothing was changed"
                )


def _files_below(directory: Path, name: str) -> Iterator[str]:
    for folder, folders, files in os.walk(directory / name):
        links = [one for one in folders if (Path(folder) / one).is_symlink()]
        for one in (*files, *links):
            yield str((Path(folder) / one).relative_to(directory))

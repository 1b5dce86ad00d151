"""The starting workspace, unpacked so that nothing lands outside it.

Links are made last and only when they stay inside, so no member is ever written through one.
"""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from worker.errors import UnsafeArchive

_CHUNK_BYTES = 1024 * 1024
_MAX_PATH_BYTES = 4000


@dataclass(frozen=True, slots=True)
class ArchiveBounds:
    """How much an archive may hold."""

    max_members: int = 500_000
    max_bytes: int = 16 * 1024**3


@dataclass(slots=True)
class Unpacked:
    """What was unpacked.

    Attributes:
        skipped_links: links that led out of the workspace, left out.
    """

    files: int = 0
    size_bytes: int = 0
    skipped_links: list[str] = field(default_factory=list[str])


def unpack(
    archive: Path, root: Path, bounds: ArchiveBounds | None = None, *, every_link: bool = False
) -> Unpacked:
    """Unpack a tar file into a directory.

    Links out of the directory are left out and named; everything else that does not belong into a
    workspace refuses the whole.

    Args:
        archive: the tar file.
        root: where to; made if it is not there.
        bounds: how much it may hold.
        every_link: keep links that lead out too, where nobody follows them.

    Raises:
        UnsafeArchive: an absolute path, a `..`, a device, a member twice in different kinds, or more than
            the bounds allow.
    """
    bounds = bounds or ArchiveBounds()
    root = root.resolve()
    root.mkdir(parents=True, exist_ok=True)
    done = Unpacked()
    links: list[tarfile.TarInfo] = []
    modes: list[tuple[Path, int]] = []
    try:
        with tarfile.open(archive, mode="r:*") as tar:
            for member in _bounded(tar, bounds, done):
                target = root / _relative(member.name)
                if member.issym() or member.islnk():
                    links.append(member)
                elif member.isdir():
                    target.mkdir(parents=True, exist_ok=True)
                    modes.append((target, member.mode))
                else:
                    _write(tar, member, target)
                    done.files += 1
            for member in links:
                _link(member, root, done, every_link=every_link)
    except (tarfile.TarError, EOFError) as error:
        raise UnsafeArchive(f"the workspace is not a readable tar archive: {error}") from error
    except (FileExistsError, IsADirectoryError, NotADirectoryError) as error:
        raise UnsafeArchive(f"two members of the workspace claim one path: {error.filename}") from error
    for directory, mode in reversed(modes):
        directory.chmod(stat.S_IMODE(mode) & 0o777 | stat.S_IRWXU)
    return done


def _bounded(tar: tarfile.TarFile, bounds: ArchiveBounds, done: Unpacked) -> Iterator[tarfile.TarInfo]:
    for count, member in enumerate(tar, start=1):
        done.size_bytes += max(member.size, 0)
        if count > bounds.max_members:
            raise UnsafeArchive(f"the workspace has more than {bounds.max_members:,} members")
        if done.size_bytes > bounds.max_bytes:
            raise UnsafeArchive(f"the workspace is larger than {bounds.max_bytes:,} bytes")
        if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
            raise UnsafeArchive(f"{member.name!r} is neither a file, a directory nor a link")
        yield member


def _relative(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name:
        raise UnsafeArchive(f"{name!r} does not stay inside the workspace")
    if len(os.fsencode(name)) > _MAX_PATH_BYTES:
        raise UnsafeArchive(f"a path of more than {_MAX_PATH_BYTES:,} bytes")
    return path


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    source = tar.extractfile(member)
    if source is None:
        raise UnsafeArchive(f"{member.name!r} has no content")
    # Opened without following a link and never over something else than a file.
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with source, os.fdopen(handle, "wb") as out:
        shutil.copyfileobj(source, out, _CHUNK_BYTES)
        os.fchmod(out.fileno(), stat.S_IMODE(member.mode) & 0o777 | stat.S_IRUSR | stat.S_IWUSR)
        os.utime(out.fileno(), (member.mtime, member.mtime))


def _link(member: tarfile.TarInfo, root: Path, done: Unpacked, *, every_link: bool) -> None:
    place = root / _relative(member.name)
    if not _inside(place.parent, root):
        raise UnsafeArchive(f"{member.name!r} lies behind a link")
    if member.islnk():
        original = root / _relative(member.linkname)
        if not original.is_file() or original.is_symlink() or not _inside(original, root):
            raise UnsafeArchive(f"{member.name!r} is a hard link to something that is not in the archive")
        place.parent.mkdir(parents=True, exist_ok=True)
        os.link(original, place, follow_symlinks=False)
        return
    short = len(os.fsencode(member.linkname)) <= _MAX_PATH_BYTES
    if not short or not (every_link or _inside(place.parent / member.linkname, root)):
        done.skipped_links.append(member.name)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(member.linkname)


def _inside(path: Path, root: Path) -> bool:
    """Whether a path stays inside, with every link that already exists followed."""
    try:
        resolved = path.resolve()
    except (OSError, RuntimeError):
        return False  # a loop, or a path that is too long to be followed
    return resolved == root or root in resolved.parents

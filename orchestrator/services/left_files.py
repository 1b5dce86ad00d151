"""What a worker left in its container, brought out as a tar that is safe to hand on.

The engine's stream is read member by member. Nothing of it is opened as a file of this machine: what a job
made goes from one tar into another, and links go as links.
"""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING

from anyio import from_thread
from anyio.to_thread import run_sync

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer as Buffer

MAX_LEFT_BYTES = 2 * 1024**3
MAX_LEFT_FILES = 400_000
MAX_LEFT_FILE_BYTES = 256 * 1024**2
_BUFFER_BYTES = 256 * 1024


class NotRecoverable(Exception):
    """What was left can't be made into changes; the message says why."""


@dataclass(frozen=True, slots=True)
class LeftBounds:
    """How much is brought out.

    Attributes:
        file_bytes: larger files are left out, and the rest is brought out.
    """

    max_bytes: int = MAX_LEFT_BYTES
    max_files: int = MAX_LEFT_FILES
    file_bytes: int = MAX_LEFT_FILE_BYTES


@dataclass(slots=True)
class LeftFiles:
    """What was brought out.

    Attributes:
        left_out: names of files that are too large.
    """

    files: int = 0
    size_bytes: int = 0
    left_out: list[str] = field(default_factory=list[str])


async def bring_out(pieces: AsyncIterator[bytes], to: Path, bounds: LeftBounds | None = None) -> LeftFiles:
    """Write the files, folders and links of a directory's tar stream to a tar file.

    The directory's own name is taken off. `.git` folders, pipes and devices stay out.

    Raises:
        NotRecoverable: it is more than the bounds allow, or no tar.
        OSError: the file can't be written.
    """
    source = io.BufferedReader(_Pulled(pieces), _BUFFER_BYTES)
    return await run_sync(_bring_out, source, to, bounds or LeftBounds())


def _bring_out(source: IO[bytes], to: Path, bounds: LeftBounds) -> LeftFiles:
    done = LeftFiles()
    try:
        with (
            tarfile.open(fileobj=source, mode="r|") as left,
            tarfile.open(to, "w", format=tarfile.PAX_FORMAT) as kept,
        ):
            for member in _wanted(left, done, bounds):
                kept.addfile(member, left.extractfile(member) if member.isreg() else None)
    except tarfile.TarError as error:
        raise NotRecoverable(f"what the engine sent is no tar: {error}") from error
    return done


def _wanted(left: tarfile.TarFile, done: LeftFiles, bounds: LeftBounds) -> Iterator[tarfile.TarInfo]:
    """The members to keep, renamed."""
    for member in left:
        name = _inside(member.name)
        if name is None or not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
            continue
        if member.islnk():
            member.linkname = _inside(member.linkname) or ""
        if member.size > bounds.file_bytes or (member.islnk() and member.linkname in done.left_out):
            done.left_out.append(name)
            continue
        done.files += 1
        done.size_bytes += member.size
        if done.files > bounds.max_files:
            raise NotRecoverable(f"there are more than {bounds.max_files:,} files")
        if done.size_bytes > bounds.max_bytes:
            raise NotRecoverable(f"there are more than {bounds.max_bytes:,} bytes")
        member.name = name
        member.pax_headers = {}
        yield member


def _inside(name: str) -> str | None:
    """The name below the directory; None for the directory itself, and for what is a repository's own."""
    parts = PurePosixPath(name).parts[1:]
    return None if not parts or ".git" in parts or ".." in parts else "/".join(parts)


class _Pulled(io.RawIOBase):
    """An asynchronous stream as a thread reads it."""

    def __init__(self, pieces: AsyncIterator[bytes]) -> None:
        super().__init__()
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """Nothing else can be done with it."""
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        """Fill a part of the buffer; 0 at the end."""
        if not self._rest:
            self._rest = memoryview(from_thread.run(self._next))
        target = memoryview(buffer)
        size = min(len(target), len(self._rest))
        target[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size

    async def _next(self) -> bytes:
        return await anext(self._pieces, b"")


def only_file(packed: IO[bytes], out: IO[bytes]) -> bool:
    """Write the content of the one regular file of a tar; False when there is none."""
    with tarfile.open(fileobj=packed, mode="r:") as archive:
        member = archive.next()
        file = None if member is None or not member.isreg() else archive.extractfile(member)
        if file is None:
            return False
        shutil.copyfileobj(file, out, _BUFFER_BYTES)
        return True

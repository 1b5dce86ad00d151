"""`BlobStore` in a directory.

A blob lies at `FOLDER/ab/abcdef...`, named by its SHA-256. It is written beside, under `FOLDER/drafts`, and
appears under its name whole, or not at all.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import re
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import ParamSpec, TypeVar

import anyio
from anyio.to_thread import run_sync

from orchestrator.ports.blobs import Blob, BlobTooLarge
from orchestrator.ports.errors import StoreFull, StoreUnavailable

_READ_BYTES = 256 * 1024
_BUFFER_BYTES = 256 * 1024
_ABANDONED_S = 24 * 3600
_NAME = re.compile(r"[0-9a-f]{64}")

P = ParamSpec("P")
T = TypeVar("T")


class FileBlobStore:
    """Byte strings as files that only their owner may read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def put(self, chunks: AsyncIterator[bytes], *, limit_bytes: int) -> Blob:
        """Store a stream; it is on the disk when this returns.

        Raises:
            BlobTooLarge: it has more than `limit_bytes`; nothing of it was kept.
            StoreUnavailable: the disk is full or refuses.
        """
        draft = await _off_the_loop(_Draft, self._folder)
        try:
            async for chunk in chunks:
                if draft.size_bytes + len(chunk) > limit_bytes:
                    raise BlobTooLarge(limit_bytes)
                await _off_the_loop(draft.write, chunk)
            return await _off_the_loop(draft.keep)
        finally:
            with anyio.CancelScope(shield=True):
                await _off_the_loop(draft.discard)

    async def open(self, sha256: str, *, offset: int = 0, limit: int | None = None) -> AsyncIterator[bytes]:
        """The bytes from `offset`, at most `limit` of them, in chunks of at most 256 KiB.

        Raises:
            KeyError: there is no such blob; when the first chunk is asked for.
        """
        path = self._path(sha256)
        if path is None:
            raise KeyError(sha256)
        try:
            file = await run_sync(_open_at, path, offset)
        except FileNotFoundError:
            raise KeyError(sha256) from None
        with file:
            left = limit
            while left is None or left > 0:
                chunk = await run_sync(file.read, _READ_BYTES if left is None else min(left, _READ_BYTES))
                if not chunk:
                    return
                left = None if left is None else left - len(chunk)
                yield chunk

    async def size(self, sha256: str) -> int | None:
        """Its size in bytes, or None when it is not there."""
        path = self._path(sha256)
        if path is None:
            return None
        try:
            return (await run_sync(path.stat)).st_size
        except FileNotFoundError:
            return None

    async def delete(self, sha256: str) -> None:
        """Remove it, if it is there."""
        path = self._path(sha256)
        if path is not None:
            await run_sync(lambda: path.unlink(missing_ok=True))

    def _path(self, sha256: str) -> Path | None:
        """Where it lies; None for what is no digest, so that no name leads out of the folder."""
        return self._folder / sha256[:2] / sha256 if _NAME.fullmatch(sha256) else None


class _Draft:
    """A blob that is being written. Blocking."""

    def __init__(self, folder: Path) -> None:
        self.size_bytes = 0
        self._folder = folder
        self._digest = hashlib.sha256()
        drafts = folder / "drafts"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        drafts.mkdir(mode=0o700, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=drafts)  # 0600
        self._path = Path(name)
        self._file = os.fdopen(handle, "wb", buffering=_BUFFER_BYTES)
        _remove_abandoned(drafts, now_s=self._path.stat().st_mtime)

    def write(self, chunk: bytes) -> None:
        self._file.write(chunk)
        self._digest.update(chunk)
        self.size_bytes += len(chunk)

    def keep(self) -> Blob:
        self._file.flush()
        os.fsync(self._file.fileno())
        name = self._digest.hexdigest()
        place = self._folder / name[:2]
        place.mkdir(mode=0o700, exist_ok=True)
        self._path.replace(place / name)
        for folder in (place, self._folder):
            _sync_folder(folder)
        return Blob(name, self.size_bytes)

    def discard(self) -> None:
        """Close it, and remove it unless it was kept."""
        self._path.unlink(missing_ok=True)
        with suppress(OSError):  # a full disk refuses the rest of what is thrown away anyhow
            self._file.close()


def _remove_abandoned(drafts: Path, *, now_s: float) -> None:
    """Remove what killed processes left: nobody has written to it for a day."""
    for path in drafts.iterdir():
        try:
            if path.stat().st_mtime < now_s - _ABANDONED_S:
                path.unlink()
        except FileNotFoundError:
            continue  # another writer finished it or removed it first


def _open_at(path: Path, offset: int) -> io.BufferedReader:
    file = path.open("rb")
    file.seek(offset)
    return file


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


async def _off_the_loop(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    try:
        return await run_sync(lambda: work(*args, **kwargs))
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise StoreFull("the disk is full: there is no room for the blob") from error
        raise StoreUnavailable(f"the blob can't be stored: {error.strerror}") from error

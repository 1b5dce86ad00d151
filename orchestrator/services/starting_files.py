"""Single files of a job's starting workspace, for tools that run in the orchestrator."""

from __future__ import annotations

import asyncio
import logging
import tarfile
import tempfile
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import IO

from orchestrator.domain.jobs import JobId
from orchestrator.ports.blobs import BlobStore
from orchestrator.ports.jobs import JobStore

_LOG = logging.getLogger(__name__)
_MAX_INDEXES = 8

_Index = Mapping[str, tuple[int, int]]


class StartingFiles:
    """Reads from the tar that a job began with; nothing that an agent wrote since is seen.

    A tar is read through once; where its files lie is kept for the latest few.
    """

    def __init__(self, jobs: JobStore, blobs: BlobStore) -> None:
        self._jobs = jobs
        self._blobs = blobs
        self._indexes: OrderedDict[str, _Index] = OrderedDict()
        self._reading = asyncio.Lock()

    async def read(self, job_id: str, path: str, limit_bytes: int) -> bytes | None:
        """A regular file's bytes, one more than the limit at most; None when there is none of this name.

        Links are no files here: they are not followed.
        """
        job = await self._jobs.get(JobId(job_id))
        sha256 = None if job is None else job.spec.workspace_sha256
        if sha256 is None:
            return None
        try:
            place = (await self._index(sha256)).get(str(PurePosixPath(path)))
            if place is None:
                return None
            offset, size = place
            if size == 0:
                return b""
            chunks = self._blobs.open(sha256, offset=offset, limit=min(size, limit_bytes + 1))
            return b"".join([chunk async for chunk in chunks])
        except KeyError:
            return None  # the job was removed meanwhile

    async def _index(self, sha256: str) -> _Index:
        async with self._reading:
            found = self._indexes.get(sha256)
            if found is None:
                found = self._indexes[sha256] = await self._read_through(sha256)
                if len(self._indexes) > _MAX_INDEXES:
                    self._indexes.popitem(last=False)
            self._indexes.move_to_end(sha256)
            return found

    async def _read_through(self, sha256: str) -> _Index:
        with tempfile.TemporaryFile() as copy:
            async for chunk in self._blobs.open(sha256):
                await asyncio.to_thread(copy.write, chunk)
            copy.seek(0)
            return await asyncio.to_thread(_places, copy, sha256)


def _places(file: IO[bytes], sha256: str) -> _Index:
    """Where each regular file's bytes lie; of a name that stands twice the last one, as when unpacked."""
    found: dict[str, tuple[int, int]] = {}
    try:
        with tarfile.open(fileobj=file, mode="r:") as tar:
            for member in tar:
                name = str(PurePosixPath(member.name))
                found.pop(name, None)
                if member.isreg() and not member.issparse():
                    found[name] = (member.offset_data, member.size)
    except tarfile.TarError as error:
        _LOG.warning("the workspace %s can't be read by tools: %s", sha256[:12], error)
    return found

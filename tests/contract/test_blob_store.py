"""What every `BlobStore` does, and what the one in files leaves on the disk (PD-6)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from orchestrator.adapters.blobs.files import FileBlobStore
from orchestrator.ports.blobs import Blob, BlobStore, BlobTooLarge
from orchestrator.ports.errors import StoreUnavailable

LIMIT = 10**9


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "blobs"


@pytest.fixture
def blobs(folder: Path) -> BlobStore:
    return FileBlobStore(folder)


async def stream(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def read(blobs: BlobStore, sha256: str, *, offset: int = 0, limit: int | None = None) -> bytes:
    return b"".join([chunk async for chunk in blobs.open(sha256, offset=offset, limit=limit)])


def everything_in(folder: Path) -> list[Path]:
    return list(folder.rglob("*"))


def files_in(folder: Path) -> list[Path]:
    return [path for path in everything_in(folder) if path.is_file()]


@pytest.mark.parametrize("chunks", [(), (b"",), (b"one",), (b"one", b"", b"two"), (os.urandom(700_001),) * 3])
async def test_a_stream_comes_back_as_it_was_put(blobs: BlobStore, chunks: tuple[bytes, ...]):
    whole = b"".join(chunks)
    blob = await blobs.put(stream(*chunks), limit_bytes=LIMIT)
    assert blob == Blob(hashlib.sha256(whole).hexdigest(), len(whole))
    assert await read(blobs, blob.sha256) == whole
    assert await blobs.size(blob.sha256) == len(whole)


async def test_a_part_is_read_by_offset_and_limit(blobs: BlobStore):
    whole = os.urandom(1_000_000)
    sha256 = (await blobs.put(stream(whole), limit_bytes=LIMIT)).sha256
    for offset, limit in [(0, 0), (0, 10), (999_990, 100), (1_000_000, 5), (2_000_000, None), (5, 700_000)]:
        end = None if limit is None else offset + limit
        assert await read(blobs, sha256, offset=offset, limit=limit) == whole[offset:end]


async def test_large_blobs_are_read_in_bounded_chunks(blobs: BlobStore):
    sha256 = (await blobs.put(stream(bytes(3_000_000)), limit_bytes=LIMIT)).sha256
    assert max([len(chunk) async for chunk in blobs.open(sha256)]) <= 256 * 1024


async def test_the_same_bytes_are_one_blob(blobs: BlobStore, folder: Path):
    first = await blobs.put(stream(b"same"), limit_bytes=LIMIT)
    assert await blobs.put(stream(b"sa", b"me"), limit_bytes=LIMIT) == first
    assert len(files_in(folder)) == 1


async def test_a_stream_of_exactly_the_limit_is_kept(blobs: BlobStore):
    assert (await blobs.put(stream(b"12", b"34"), limit_bytes=4)).size_bytes == 4


async def test_a_stream_over_the_limit_leaves_nothing_and_is_read_no_further(blobs: BlobStore, folder: Path):
    asked: list[int] = []

    async def endless() -> AsyncIterator[bytes]:
        while True:
            asked.append(1)
            yield bytes(1000)

    with pytest.raises(BlobTooLarge) as failure:
        await blobs.put(endless(), limit_bytes=10_000)
    assert failure.value.limit_bytes == 10_000
    assert len(asked) == 11
    assert files_in(folder) == []


async def test_a_stream_that_breaks_leaves_nothing(blobs: BlobStore, folder: Path):
    async def broken() -> AsyncIterator[bytes]:
        yield bytes(1_000_000)
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await blobs.put(broken(), limit_bytes=LIMIT)
    assert files_in(folder) == []


async def test_a_cancelled_put_leaves_nothing(blobs: BlobStore, folder: Path):
    async def stalls() -> AsyncIterator[bytes]:
        yield bytes(1_000_000)
        assert len(files_in(folder)) == 1
        scope.cancel()
        await anyio.sleep_forever()

    with anyio.CancelScope() as scope:
        await blobs.put(stalls(), limit_bytes=LIMIT)
    assert scope.cancelled_caught
    assert files_in(folder) == []


async def test_many_that_put_and_read_at_once_get_whole_blobs(blobs: BlobStore, folder: Path):
    whole = os.urandom(300_000)
    sha256 = hashlib.sha256(whole).hexdigest()

    async def put_and_read() -> None:
        await blobs.put(stream(whole[:100_000], whole[100_000:]), limit_bytes=LIMIT)
        assert await read(blobs, sha256) == whole

    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(put_and_read)
    assert len(files_in(folder)) == 1


@pytest.mark.parametrize(
    "name",
    ["", "ab", "ab" * 32, "AB" * 32, "../" * 20 + "etc", "ab/" + "c" * 61, "\x00" * 64, "ab" * 32 + "\n"],
)
async def test_what_is_not_there_is_said_so_and_no_name_leads_out(blobs: BlobStore, name: str):
    with pytest.raises(KeyError):
        await read(blobs, name)
    assert await blobs.size(name) is None
    await blobs.delete(name)


async def test_a_deleted_blob_is_gone(blobs: BlobStore):
    sha256 = (await blobs.put(stream(b"x"), limit_bytes=LIMIT)).sha256
    await blobs.delete(sha256)
    await blobs.delete(sha256)
    assert await blobs.size(sha256) is None


async def test_a_blob_that_is_deleted_while_it_is_read_is_read_to_its_end(blobs: BlobStore):
    sha256 = (await blobs.put(stream(bytes(1_000_000)), limit_bytes=LIMIT)).sha256
    read_bytes = 0
    async for chunk in blobs.open(sha256):
        await blobs.delete(sha256)
        read_bytes += len(chunk)
    assert read_bytes == 1_000_000


async def test_files_and_folders_are_for_their_owner_alone(blobs: BlobStore, folder: Path):
    await blobs.put(stream(b"x"), limit_bytes=LIMIT)
    for path in (folder, *everything_in(folder)):
        assert path.stat().st_mode & 0o077 == 0, path


async def test_a_disk_that_refuses_is_said_so(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable, match="Not a directory"):
        await FileBlobStore(tmp_path / "file" / "blobs").put(stream(b"x"), limit_bytes=LIMIT)


async def test_what_a_killed_process_left_is_removed_after_a_day(blobs: BlobStore, folder: Path):
    drafts = folder / "drafts"
    drafts.mkdir(parents=True)
    for name, age_s in [("fresh", 3600), ("old", 25 * 3600)]:
        (drafts / name).touch()
        then_s = (drafts / name).stat().st_mtime - age_s
        os.utime(drafts / name, (then_s, then_s))
    await blobs.put(stream(b"x"), limit_bytes=LIMIT)
    assert [path.name for path in drafts.iterdir()] == ["fresh"]

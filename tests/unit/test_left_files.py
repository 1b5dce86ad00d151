"""PD-50: what a job left goes from tar to tar; no path of it is opened, and no bound is passed."""

from __future__ import annotations

import io
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from orchestrator.services.left_files import LeftBounds, NotRecoverable, bring_out


async def in_pieces(data: bytes, size: int = 1000) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


def a_tar(*members: tarfile.TarInfo, content: bytes = b"") -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(content) if member.isreg() else None)
    return packed.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, *, size: int = 0, to: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname = kind, size, to
    return info


FOLDER = member("workspace", tarfile.DIRTYPE)


async def test_files_folders_and_links_come_out_as_they_are_and_nothing_is_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the host's own")
    left = a_tar(
        FOLDER,
        member("workspace/d", tarfile.DIRTYPE),
        member("workspace/d/a", size=3),
        member("workspace/out", tarfile.SYMTYPE, to=str(secret)),
        member("workspace/same", tarfile.LNKTYPE, to="workspace/d/a"),
        content=b"abc",
    )
    out = tmp_path / "out.tar"
    done = await bring_out(in_pieces(left), out)
    with tarfile.open(out) as tar:
        kinds = {one.name: (one.type, one.linkname, one.size) for one in tar}
    assert kinds == {
        "d": (tarfile.DIRTYPE, "", 0),
        "d/a": (tarfile.REGTYPE, "", 3),
        "out": (tarfile.SYMTYPE, str(secret), 0),
        "same": (tarfile.LNKTYPE, "d/a", 0),
    }
    assert (done.files, done.left_out) == (4, [])
    assert secret.read_bytes() not in out.read_bytes()


async def test_repositories_pipes_devices_and_paths_that_lead_out_stay_where_they_are(tmp_path: Path) -> None:
    left = a_tar(
        FOLDER,
        member("workspace/pipe", tarfile.FIFOTYPE),
        member("workspace/disk", tarfile.BLKTYPE),
        member("workspace/.git/hooks/post-checkout"),
        member("workspace/deps/.git/config"),
        member("workspace/../outside"),
        member("workspace/kept"),
    )
    await bring_out(in_pieces(left), tmp_path / "out.tar")
    with tarfile.open(tmp_path / "out.tar") as tar:
        assert tar.getnames() == ["kept"]


async def test_one_file_that_is_too_large_loses_no_other(tmp_path: Path) -> None:
    left = a_tar(
        FOLDER,
        member("workspace/big", size=600),
        member("workspace/alias", tarfile.LNKTYPE, to="workspace/big"),
        member("workspace/small", size=5),
        content=b"x" * 600,
    )
    done = await bring_out(in_pieces(left), tmp_path / "out.tar", LeftBounds(file_bytes=500))
    assert done.left_out == ["big", "alias"]
    with tarfile.open(tmp_path / "out.tar") as tar:
        assert tar.getnames() == ["small"]


@pytest.mark.parametrize(
    ("bounds", "words"),
    [(LeftBounds(max_bytes=900), "more than 900 bytes"), (LeftBounds(max_files=2), "more than 2 files")],
)
async def test_a_bound_that_is_passed_is_named(tmp_path: Path, bounds: LeftBounds, words: str) -> None:
    files = (member(f"workspace/{number}", size=400) for number in range(3))
    with pytest.raises(NotRecoverable, match=words):
        await bring_out(in_pieces(a_tar(FOLDER, *files, content=b"x" * 400)), tmp_path / "out.tar", bounds)


@pytest.mark.parametrize("sent", [b"", b"no tar at all" * 100, a_tar(member("workspace/a"))[:300]])
async def test_what_is_no_tar_is_an_error_and_no_empty_workspace(tmp_path: Path, sent: bytes) -> None:
    with pytest.raises(NotRecoverable, match="no tar"):
        await bring_out(in_pieces(sent), tmp_path / "out.tar")

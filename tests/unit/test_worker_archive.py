"""The starting workspace lands inside its directory, or not at all (PD-13)."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from worker.archive import ArchiveBounds, unpack
from worker.errors import UnsafeArchive


def member(name: str, data: bytes = b"", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in fields.items():
        setattr(info, key, value)
    return info, data


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tuple[tarfile.TarInfo, bytes]:
    return member(name, type=kind, linkname=target)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "workspace"


@pytest.fixture
def archive(tmp_path: Path) -> Callable[..., Path]:
    def make(*members: tuple[tarfile.TarInfo, bytes]) -> Path:
        path = tmp_path / "w.tar"
        with tarfile.open(path, "w") as tar:
            for info, data in members:
                tar.addfile(info, io.BytesIO(data))
        return path

    return make


Make = Callable[..., Path]


def test_files_modes_directories_and_inner_links_arrive(archive: Make, root: Path) -> None:
    made = archive(
        member("d", type=tarfile.DIRTYPE, mode=0o555),
        member("d/run.sh", b"#!", mode=0o755),
        member("./d/e/f.txt", b"deep", mode=0o400),
        link("d/l", "e/f.txt"),
        link("hard", "d/run.sh", tarfile.LNKTYPE),
    )
    unpacked = unpack(made, root)
    assert (unpacked.files, unpacked.skipped_links) == (2, [])
    assert (root / "d/run.sh").stat().st_mode & 0o777 == 0o755
    assert (root / "d/l").read_bytes() == b"deep"
    assert (root / "hard").read_bytes() == b"#!"
    assert (root / "d").stat().st_mode & 0o700 == 0o700


@pytest.mark.parametrize("name", ["/etc/x", "../x", "a/../../x", "a/.."])
def test_a_path_out_of_the_workspace_refuses_the_archive(
    archive: Make, root: Path, tmp_path: Path, name: str
) -> None:
    with pytest.raises(UnsafeArchive, match="inside"):
        unpack(archive(member(name, b"x")), root)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("target", ["/etc/passwd", "../outside", "d/../../outside", "up/.."])
def test_a_link_out_is_left_out_and_named(archive: Make, root: Path, target: str) -> None:
    made = archive(member("d", type=tarfile.DIRTYPE), link("up", "."), link("out", target), member("a", b"a"))
    assert unpack(made, root).skipped_links == ["out"]
    assert not (root / "out").is_symlink()
    assert (root / "a").read_bytes() == b"a"


def test_a_chain_of_links_does_not_lead_out(archive: Make, root: Path) -> None:
    made = archive(member("a/b/f", b"f"), link("l", "a/b"), link("m", "l/../../.."))
    assert unpack(made, root).skipped_links == ["m"]


def test_nothing_is_written_through_a_link(archive: Make, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    made = archive(link("d", str(outside)), member("d/x", b"x"))
    unpack_or_refuse(made, root)
    assert list(outside.iterdir()) == []


def test_a_link_that_was_there_is_not_followed(archive: Make, root: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("safe")
    root.mkdir()
    (root / "a").symlink_to(victim)
    unpack_or_refuse(archive(member("a", b"overwritten")), root)
    assert victim.read_text() == "safe"


def unpack_or_refuse(made: Path, root: Path) -> None:
    try:
        unpack(made, root)
    except (UnsafeArchive, OSError):
        return


@pytest.mark.parametrize("target", ["missing", "../victim", "/etc/passwd", "l"])
def test_a_hard_link_to_anything_but_a_member_refuses(
    archive: Make, root: Path, tmp_path: Path, target: str
) -> None:
    (tmp_path / "victim").write_text("x")
    with pytest.raises(UnsafeArchive):
        unpack(archive(member("f", b"f"), link("l", "f"), link("h", target, tarfile.LNKTYPE)), root)


@pytest.mark.parametrize("kind", [tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE])
def test_devices_and_pipes_refuse(archive: Make, root: Path, kind: bytes) -> None:
    with pytest.raises(UnsafeArchive, match="neither"):
        unpack(archive(member("x", type=kind)), root)


def test_set_id_bits_are_dropped(archive: Make, root: Path) -> None:
    unpack(archive(member("x", b"x", mode=0o6755)), root)
    assert (root / "x").stat().st_mode & 0o7000 == 0


def test_count_and_size_are_bounded(archive: Make, root: Path) -> None:
    made = archive(*[member(f"f{n}", b"12345") for n in range(10)])
    with pytest.raises(UnsafeArchive, match="members"):
        unpack(made, root, ArchiveBounds(max_members=9))
    with pytest.raises(UnsafeArchive, match="larger"):
        unpack(made, root, ArchiveBounds(max_bytes=49))


def test_what_is_no_archive_is_a_clear_error(tmp_path: Path, root: Path) -> None:
    path = tmp_path / "w.tar"
    path.write_bytes(b"no tar at all" * 100)
    with pytest.raises(UnsafeArchive, match="not a readable tar"):
        unpack(path, root)


def test_a_cut_archive_is_a_clear_error(archive: Make, root: Path) -> None:
    made = archive(member("f", b"x" * 100_000))
    made.write_bytes(made.read_bytes()[:50_000])
    with pytest.raises(UnsafeArchive):
        unpack(made, root)


def test_one_path_as_a_file_and_a_directory_refuses(archive: Make, root: Path) -> None:
    with pytest.raises(UnsafeArchive, match="one path"):
        unpack(archive(member("a", b"x"), member("a/b", b"y")), root)

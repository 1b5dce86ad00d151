"""Which files travel into a job, and how their tar comes out of it (PD-13)."""

from __future__ import annotations

import os
import socket
import subprocess
import tarfile
import tracemalloc
from pathlib import Path

import pytest

from orchestrator.cli.failures import CommandFailed, UsageMistake
from orchestrator.cli.workspace import Workspace, look_at
from worker.archive import unpack


@pytest.fixture(autouse=True)
def plain_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)


def git(directory: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=directory, check=True, capture_output=True)


def put(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    return root


def repository(root: Path, *names: str) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "--quiet")
    return put(root, *names)


def pack(directory: Path, tar: Path, *, include_git: bool = False) -> Workspace:
    workspace = look_at(directory, include_git=include_git)
    with tar.open("wb") as file:
        file.writelines(workspace.tar())
    return workspace


def packed(directory: Path, *, include_git: bool = False) -> set[str]:
    tar = directory.parent / f"{directory.name}.tar"
    done = pack(directory, tar, include_git=include_git)
    with tarfile.open(tar) as archive:
        names = archive.getnames()
    assert set(done.names) == set(names)
    assert len(names) == len(set(names))
    return set(names)


def test_a_repository_travels_without_what_it_ignores_and_without_its_history(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r", "kept.py", "new/deep.py", "build/out.o", "a.log", "keep.log")
    (repo / ".gitignore").write_text("build/\n*.log\n!keep.log\n")
    git(repo, "add", "kept.py")
    assert packed(repo) == {".gitignore", "kept.py", "new/deep.py", "keep.log"}


def test_a_tracked_file_travels_although_it_is_ignored_and_a_deleted_one_does_not(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r", "forced.log", "gone.py")
    (repo / ".gitignore").write_text("*.log\n")
    git(repo, "add", "--force", "forced.log", "gone.py")
    (repo / "gone.py").unlink()
    assert packed(repo) == {".gitignore", "forced.log"}


def test_a_subdirectory_of_a_repository_is_packed_by_its_own_names(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r", "top.py", "sub/a.py", "sub/b.log")
    (repo / ".gitignore").write_text("*.log\n")
    assert packed(repo / "sub") == {"a.py"}


def test_a_directory_that_the_repository_around_it_ignores_travels_whole(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r", "scratch/a.py", "scratch/b/c.py")
    (repo / ".gitignore").write_text("scratch/\n")
    assert packed(repo / "scratch") == {"a.py", "b", "b/c.py"}


def test_a_repository_inside_travels_by_its_own_rules(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r", "a.py")
    inner = repository(repo / "vendor" / "lib", "b.py", "b.o")
    (inner / ".gitignore").write_text("*.o\n")
    assert packed(repo) == {"a.py", "vendor/lib", "vendor/lib/b.py", "vendor/lib/.gitignore"}


def test_another_users_checkout_is_read_as_a_repository_and_runs_nothing_of_it(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r", "a.py", "b.log")
    (repo / ".gitignore").write_text("*.log\n")
    git(repo, "config", "core.fsmonitor", f"touch {tmp_path / 'ran'}; false")
    os.chown(repo, 4321, 4321)
    assert packed(repo) == {".gitignore", "a.py"}
    assert not (tmp_path / "ran").exists()


def test_variables_of_a_running_git_hook_lead_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = repository(tmp_path / "other", "other.py")
    repo = repository(tmp_path / "r", "a.py")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    assert packed(repo) == {"a.py"}


def test_the_history_travels_when_it_is_asked_for(tmp_path: Path) -> None:
    names = packed(repository(tmp_path / "r", "a.py"), include_git=True)
    assert {"a.py", ".git", ".git/HEAD"} <= names


def test_a_history_that_is_elsewhere_is_refused(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r", "sub/a.py")
    with pytest.raises(UsageMistake, match=r"has no \.git directory of its own"):
        packed(repo / "sub", include_git=True)


def test_a_plain_directory_travels_whole_but_for_sockets_and_pipes(tmp_path: Path) -> None:
    plain = put(tmp_path / "p", "a.py", ".hidden/b", "sub/.git/HEAD")
    os.mkfifo(plain / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(plain / "socket"))
        assert packed(plain) == {"a.py", ".hidden", ".hidden/b", "sub"}


def test_links_modes_and_odd_names_arrive_as_they_were(tmp_path: Path) -> None:
    source = put(tmp_path / "p", "run.sh", "sub/x", "new\nline", "ü")
    (source / "run.sh").chmod(0o750)
    odd = os.fsencode(source) + b"/latin-\xe9"
    Path(os.fsdecode(odd)).write_bytes(b"odd")
    (source / "inside").symlink_to("sub/x")
    (source / "dangling").symlink_to("nowhere")
    (source / "folder").symlink_to("sub")
    (source / "hard").hardlink_to(source / "sub" / "x")
    pack(source, tmp_path / "w.tar")

    target = tmp_path / "out"
    unpack(tmp_path / "w.tar", target)

    assert {path.name for path in target.iterdir()} == {path.name for path in source.iterdir()}
    assert (target / "run.sh").stat().st_mode & 0o777 == 0o750
    assert (target / "inside").readlink() == Path("sub/x")
    assert (target / "folder").is_symlink()
    assert (target / "dangling").is_symlink()
    assert (target / "hard").read_text() == "sub/x"
    assert Path(os.fsdecode(os.fsencode(target) + b"/latin-\xe9")).read_bytes() == b"odd"


def test_large_files_pass_in_small_pieces_and_in_little_memory(tmp_path: Path) -> None:
    """300 MB, most of it a hole, beside 2,000 small files."""
    source = put(tmp_path / "p", *(f"many/{number}" for number in range(2000)))
    with (source / "big").open("wb") as file:
        file.truncate(300 * 1024**2)
        file.seek(0)
        file.write(b"begin")
    workspace = look_at(source)
    tracemalloc.start()
    sizes = [len(piece) for piece in workspace.tar()]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sum(sizes) > 300 * 1024**2
    assert max(sizes) <= 1024**2
    assert peak < 8 * 1024**2


def test_too_much_is_refused_before_it_is_read_and_the_largest_are_named(tmp_path: Path) -> None:
    """A sparse file of 5 GB, with 0 blocks on the disk."""
    source = put(tmp_path / "p", "small")
    for name, size in (("disk.img", 5 * 1000**3), ("movie", 200_000)):
        with (source / name).open("wb") as file:
            file.truncate(size)
    with pytest.raises(
        CommandFailed, match=r"more than 1,073,741,824.*largest: disk\.img \(5,000,000,000 bytes\)"
    ):
        look_at(source)


def test_a_file_that_shrinks_while_it_is_read_is_named(tmp_path: Path) -> None:
    source = put(tmp_path / "p", "a" * 50)
    workspace = look_at(source)
    pieces = workspace.tar()
    (source / ("a" * 50)).write_text("x" * 1_000_000)
    next(pieces)
    (source / ("a" * 50)).write_text("")
    with pytest.raises(CommandFailed, match="became shorter while it was read"):
        list(pieces)


def test_what_an_apply_left_behind_stays_here(tmp_path: Path) -> None:
    assert packed(put(tmp_path / "p", "a", ".portside-apply/journal.json")) == {"a"}


def test_owners_of_this_machine_stay_here(tmp_path: Path) -> None:
    pack(put(tmp_path / "p", "a"), tmp_path / "w.tar")
    with tarfile.open(tmp_path / "w.tar") as archive:
        (member,) = archive.getmembers()
    assert (member.uid, member.gid, member.uname, member.gname) == (1000, 1000, "", "")


def test_a_workspace_that_is_none_or_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageMistake, match="is not a directory"):
        pack(tmp_path / "nowhere", tmp_path / "w.tar")
    monkeypatch.setattr("orchestrator.cli.workspace.MAX_FILES", 2)
    with pytest.raises(CommandFailed, match="more than 2 files"):
        pack(put(tmp_path / "p", "a", "b", "c"), tmp_path / "w.tar")

"""Which files travel into a job, and how their tar comes out of it."""

from __future__ import annotations

import os
import socket
import subprocess
import tarfile
from pathlib import Path

import pytest

from orchestrator.cli.failures import CommandFailed, UsageMistake
from orchestrator.cli.workspace import pack
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


def packed(directory: Path, *, include_git: bool = False) -> set[str]:
    tar = directory.parent / f"{directory.name}.tar"
    done = pack(directory, tar, include_git=include_git)
    with tarfile.open(tar) as archive:
        names = archive.getnames()
    assert done.files == len(names) == len(set(names))
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
    with pytest.raises(UsageMistake, match="has no .git directory of its own"):
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

    assert sorted(os.listdir(os.fsencode(target))) == sorted(os.listdir(os.fsencode(source)))
    assert (target / "run.sh").stat().st_mode & 0o777 == 0o750
    assert (target / "inside").readlink() == Path("sub/x")
    assert (target / "folder").is_symlink()
    assert (target / "dangling").is_symlink()
    assert (target / "hard").read_text() == "sub/x"
    assert Path(os.fsdecode(os.fsencode(target) + b"/latin-\xe9")).read_bytes() == b"odd"


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

"""A job's patch on a checkout: all of it or nothing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from orchestrator.cli.failures import FAILED, CommandFailed, UsageMistake
from orchestrator.cli.patch import apply_patch


def patch_of(tmp_path: Path, before: dict[str, bytes], after: dict[str, bytes]) -> bytes:
    """The patch from one set of files to another, as a worker makes it."""
    repo = tmp_path / "made"
    repo.mkdir()
    identity = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "core.autocrlf=false")

    def git(*arguments: str) -> bytes:
        return subprocess.run(
            ["git", *identity, *arguments], cwd=repo, check=True, capture_output=True
        ).stdout

    git("init", "--quiet")
    write(repo, before)
    git("add", "--all")
    git("commit", "--quiet", "--allow-empty", "--message", "x")
    for name in before.keys() - after.keys():
        (repo / name).unlink()
    write(repo, after)
    git("add", "--all")
    return git("diff", "--cached", "--binary", "--full-index")


def write(root: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return root


def files(root: Path) -> dict[str, bytes]:
    found = (path for path in root.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {str(path.relative_to(root)): path.read_bytes() for path in found}


BEFORE = {"a.py": b"one\r\ntwo\r\n", "deep/b.bin": b"\0\1\2", "gone.txt": b"x\n"}
AFTER = {"a.py": b"one\r\nTWO\r\n", "deep/b.bin": b"\0\1\3", "new/latin.txt": b"caf\xe9\n"}


def test_a_patch_changes_makes_and_removes_files_byte_for_byte(tmp_path: Path) -> None:
    patch = patch_of(tmp_path, BEFORE, AFTER)
    target = write(tmp_path / "target", BEFORE)
    apply_patch(patch, target)
    assert files(target) == AFTER


@pytest.mark.parametrize("place", ["sub", "sub/with:colon"])
def test_in_a_repositorys_subdirectory_paths_start_there(tmp_path: Path, place: str) -> None:
    repo = tmp_path / "repo"
    write(repo / place, BEFORE)
    write(repo, {"a.py": b"another\n"})
    subprocess.run(["git", "init", "--quiet", str(repo)], check=True)
    apply_patch(patch_of(tmp_path, BEFORE, AFTER), repo / place)
    assert files(repo / place) == AFTER
    assert (repo / "a.py").read_bytes() == b"another\n"


def test_another_users_checkout_takes_it_too(tmp_path: Path) -> None:
    repo = write(tmp_path / "repo", BEFORE)
    subprocess.run(["git", "init", "--quiet", str(repo)], check=True)
    os.chown(repo, 4321, 4321)
    apply_patch(patch_of(tmp_path, BEFORE, AFTER), repo)
    assert files(repo) == AFTER


def test_one_file_that_does_not_fit_leaves_all_as_they_were(tmp_path: Path) -> None:
    patch = patch_of(tmp_path, BEFORE, AFTER)
    changed = BEFORE | {"gone.txt": b"edited since\n"}
    target = write(tmp_path / "target", changed)
    with pytest.raises(
        CommandFailed, match=r"nothing was changed: error: patch failed: gone\.txt:1"
    ) as caught:
        apply_patch(patch, target)
    assert caught.value.exit_code == FAILED
    assert files(target) == changed


@pytest.mark.parametrize("path", ["../outside", ".git/hooks/post-checkout", "/etc/portside-test"])
def test_a_patch_stays_in_the_workspace_and_out_of_its_history(tmp_path: Path, path: str) -> None:
    patch = f"diff --git a/{path} b/{path}\nnew file mode 100755\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"
    target = tmp_path / "target"
    target.mkdir()
    subprocess.run(["git", "init", "--quiet", str(target)], check=True)
    with pytest.raises(CommandFailed, match="nothing was changed"):
        apply_patch(patch.encode(), target)
    assert not (tmp_path / "outside").exists()
    assert not (target / ".git/hooks/post-checkout").exists()


def test_a_patch_never_writes_through_a_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    target = tmp_path / "target"
    target.mkdir()
    (target / "link").symlink_to(outside)
    patch = patch_of(tmp_path, {}, {"link/x": b"x\n"})
    with pytest.raises(CommandFailed, match="nothing was changed"):
        apply_patch(patch, target)
    assert list(outside.iterdir()) == []


def test_an_empty_patch_changes_nothing_and_needs_no_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    apply_patch(b"\n", tmp_path)
    with pytest.raises(CommandFailed, match="git is not installed"):
        apply_patch(b"x", tmp_path)


def test_a_directory_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageMistake, match="is not a directory"):
        apply_patch(b"x", tmp_path / "nowhere")

"""The diff of a workspace, by real git (PD-13)."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from worker.changes import Baseline, Patch
from worker.errors import ChangesFailed


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    root.mkdir()
    return root


@pytest.fixture
def baseline(workspace: Path, tmp_path: Path) -> Baseline:
    return Baseline(workspace, tmp_path / "state")


def applied(patch: Patch, before: Path) -> Path:
    """The patch applied to a copy of the starting state, by git itself."""
    if patch.size_bytes:
        subprocess.run(
            ["git", "apply", "--binary", str(patch.path)],
            cwd=before,
            check=True,
            env={"PATH": os.environ["PATH"]},
        )
    return before


def tree(root: Path) -> dict[str, tuple[int, bytes]]:
    found: dict[str, tuple[int, bytes]] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if ".git" in path.parts:
            continue
        if path.is_symlink():
            found[name] = (-1, os.fsencode(path.readlink()))
        elif path.is_file():
            found[name] = (path.stat().st_mode & 0o111, path.read_bytes())
    return found


def git(root: Path, *arguments: str) -> str:
    settings = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(
        ["git", *settings, *arguments], cwd=root, check=True, capture_output=True, text=True
    )
    return done.stdout


async def test_applying_the_diff_gives_exactly_the_new_workspace(
    baseline: Baseline, workspace: Path, tmp_path: Path
) -> None:
    """New, changed, deleted, renamed, binary, empty, CRLF, BOM, no final newline, modes, links, odd names."""
    (workspace / "change.txt").write_bytes(b"a\r\nb\r\n")
    (workspace / "delete.txt").write_text("gone\n")
    (workspace / "rename.txt").write_text("long enough to be seen as the same\n" * 5)
    (workspace / "run.sh").write_text("#!/bin/sh\n")
    (workspace / "bin").write_bytes(bytes(range(256)))
    (workspace / "link").symlink_to("change.txt")
    (workspace / "sub").mkdir()
    (workspace / "sub" / "kept.txt").write_text("kept\n")
    before = tmp_path / "before"
    shutil.copytree(workspace, before, symlinks=True)
    await baseline.take()

    (workspace / "change.txt").write_bytes(b"a\r\nB\r\nno newline")
    (workspace / "delete.txt").unlink()
    (workspace / "rename.txt").rename(workspace / "sub" / "renamed.txt")
    (workspace / "run.sh").chmod(0o755)
    (workspace / "bin").write_bytes(bytes(range(255, -1, -1)))
    (workspace / "link").unlink()
    (workspace / "link").symlink_to("sub/kept.txt")
    (workspace / "new dir").mkdir()
    (workspace / "new dir" / 'b\u00fc\n"x.txt').write_text("odd name\n")
    (workspace / "empty").touch()
    (workspace / "bom.txt").write_bytes(b"\xef\xbb\xbfx\n")
    (workspace / os.fsdecode(b"latin\xe9")).write_bytes(b"bytes\n")
    patch = await baseline.diff()

    assert tree(applied(patch, before)) == tree(workspace)
    assert patch.files == 10
    assert b"rename from rename.txt" in patch.path.read_bytes()


async def test_no_change_is_an_empty_patch_with_its_digest(baseline: Baseline, workspace: Path) -> None:
    (workspace / "a").write_text("a")
    await baseline.take()
    patch = await baseline.diff()
    expected = base64.b64encode(hashlib.sha256(b"").digest()).decode()
    assert (patch.size_bytes, patch.files, patch.digest) == (0, 0, f"sha-256=:{expected}:")


async def test_the_users_repository_is_neither_written_nor_part_of_the_diff(
    baseline: Baseline, workspace: Path
) -> None:
    git(workspace, "init", "--quiet")
    (workspace / "a").write_text("a\n")
    git(workspace, "add", "a")
    git(workspace, "commit", "--quiet", "-m", "x")

    def state() -> dict[str, tuple[float, bytes]]:
        files = (path for path in (workspace / ".git").rglob("*") if path.is_file())
        return {str(path): (path.stat().st_mtime, path.read_bytes()) for path in files}

    untouched = state()
    await baseline.take()
    (workspace / "a").write_text("b\n")
    patch = await baseline.diff()
    assert state() == untouched
    (workspace / ".git" / "config").write_text("[core]\n")
    assert (await baseline.diff()).files == patch.files == 1


async def test_hooks_filters_and_attributes_of_the_workspace_have_no_say(
    baseline: Baseline, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a clean filter nor line-ending rules nor a user's gitconfig change what is recorded."""
    marker = tmp_path / "ran"
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        f'[filter "f"]\n clean = "touch {marker}; cat"\n'
        f'[diff]\n noprefix = true\n context = 0\n external = "touch {marker}"\n'
        f'[core]\n autocrlf = input\n hooksPath = {tmp_path}\n fsmonitor = "touch {marker}"\n'
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", f"touch {marker}")
    (workspace / ".gitattributes").write_text("* text=auto eol=lf filter=f ident\n*.dat -diff\n*.x diff=f\n")
    (workspace / "a.txt").write_bytes(b"$Id$\r\none\r\n")
    before = tmp_path / "before"
    shutil.copytree(workspace, before)
    await baseline.take()
    (workspace / "a.txt").write_bytes(b"$Id$\r\ntwo\r\n")
    (workspace / "b.dat").write_bytes(b"text\r\n")
    patch = await baseline.diff()
    assert b"+two\r\n" in patch.path.read_bytes()
    assert b"--- a/a.txt" in patch.path.read_bytes()
    assert b"\n $Id$\r\n" in patch.path.read_bytes()
    assert not marker.exists()


async def test_files_of_repositories_inside_the_workspace_are_in_the_diff(
    baseline: Baseline, workspace: Path, tmp_path: Path
) -> None:
    """A folder with its own `.git`, there before or cloned by the agent, is a plain folder here."""

    def repository(name: str) -> None:
        root = workspace / name
        root.mkdir(parents=True)
        git(root, "init", "--quiet")
        (root / "file").write_text(f"{name}\n")
        git(root, "add", "file")
        git(root, "commit", "--quiet", "-m", "x")

    repository("old")
    before = tmp_path / "before"
    shutil.copytree(workspace, before)
    await baseline.take()
    (workspace / "old" / "file").write_text("changed\n")
    (workspace / "old" / "more").write_text("more\n")
    repository("deps/new")
    repository("deps/new/inner")
    patch = await baseline.diff()
    assert tree(applied(patch, before)) == tree(workspace)
    assert patch.files == 4


async def test_ignored_files_of_the_start_are_compared_and_new_ones_named(
    baseline: Baseline, workspace: Path
) -> None:
    (workspace / ".gitignore").write_text("*.log\nbuild/\n")
    (workspace / "kept.log").write_text("a\n")
    await baseline.take()
    (workspace / "kept.log").write_text("b\n")
    (workspace / "new.log").write_text("c\n")
    (workspace / "build").mkdir()
    (workspace / "build" / "out").write_text("d\n")
    patch = await baseline.diff()
    assert patch.files == 1
    assert set(patch.ignored) == {"new.log", "build/"}


async def test_a_file_that_can_not_be_recorded_does_not_lose_the_others(
    baseline: Baseline, workspace: Path
) -> None:
    await baseline.take()
    os.mkfifo(workspace / "pipe")
    (workspace / "a").write_text("a\n")
    patch = await baseline.diff()
    assert patch.files == 1


async def test_a_workspace_that_was_never_recorded_has_an_empty_patch(baseline: Baseline) -> None:
    assert (await baseline.diff()).size_bytes == 0


async def test_a_destroyed_baseline_is_a_clear_error(
    baseline: Baseline, workspace: Path, tmp_path: Path
) -> None:
    await baseline.take()
    shutil.rmtree(tmp_path / "state" / "baseline.git" / "objects")
    (workspace / "a").write_text("a\n")
    with pytest.raises(ChangesFailed, match="git"):
        await baseline.diff()


async def test_a_file_that_became_a_directory_and_back(
    baseline: Baseline, workspace: Path, tmp_path: Path
) -> None:
    (workspace / "a").write_text("file\n")
    (workspace / "d").mkdir()
    (workspace / "d" / "x").write_text("x\n")
    before = tmp_path / "before"
    shutil.copytree(workspace, before)
    await baseline.take()
    (workspace / "a").unlink()
    (workspace / "a").mkdir()
    (workspace / "a" / "y").write_text("y\n")
    shutil.rmtree(workspace / "d")
    (workspace / "d").write_text("now a file\n")
    patch = await baseline.diff()
    assert tree(applied(patch, before)) == tree(workspace)


async def test_a_link_that_moved_below_where_it_stood_makes_a_patch_that_git_takes(
    baseline: Baseline, workspace: Path, tmp_path: Path
) -> None:
    """As a rename git would refuse it: "beyond a symbolic link"."""
    (workspace / "u").symlink_to("nowhere")
    before = tmp_path / "before"
    shutil.copytree(workspace, before, symlinks=True)
    await baseline.take()
    (workspace / "u").unlink()
    (workspace / "u").mkdir()
    (workspace / "u" / "a").symlink_to("nowhere")
    assert tree(applied(await baseline.diff(), before)) == tree(workspace)


KILLED_PATCHER = """
import os, sys
from pathlib import Path
from worker.tools.apply_patch import ApplyPatch
from worker.tools.workspace_paths import Workspace

left, sync = int(sys.argv[2]), os.fsync
def stop(descriptor):
    global left
    sync(descriptor)
    left -= 1
    if left == 0:
        os.kill(os.getpid(), 9)
os.fsync = stop
ApplyPatch(Workspace(Path(sys.argv[1]))).apply(sys.stdin.read())
"""
PATCH = "\n".join(
    [
        "*** Begin Patch",
        *(line for name in "abc" for line in (f"*** Update File: {name}", "@@", f"-{name}", f"+{name * 2}")),
        "*** Delete File: d",
        "*** Add File: new/e",
        "+e",
        "*** End Patch",
    ]
)


@pytest.mark.parametrize("steps", range(1, 9))
async def test_what_a_killed_writer_leaves_beside_the_files_is_no_change(
    workspace: Path, baseline: Baseline, steps: int
) -> None:
    """BR-008, BR-044: a patch cut off by SIGKILL at any step leaves no temporary file in the diff."""
    for name in "abcd":
        (workspace / name).write_text(f"{name}\n")
    kept = workspace / ".portside-notes.bak"
    kept.write_text("the user's own\n")
    await baseline.take()
    done = subprocess.run(  # noqa: ASYNC221
        [sys.executable, "-c", KILLED_PATCHER, str(workspace), str(steps)],
        input=PATCH,
        text=True,
        check=False,
        env={"PYTHONPATH": str(Path.cwd())},
    )
    assert done.returncode in {0, -9}
    kept.write_text("still the user's own\n")
    patch = await baseline.diff()
    text = patch.path.read_text()
    assert ".portside-notes.bak" in text
    assert not [line for line in text.splitlines() if ".portside-" in line and "notes" not in line]
    assert patch.ignored == ()

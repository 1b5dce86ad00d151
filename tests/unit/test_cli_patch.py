"""A job's patch on a checkout: fitted or merged, all of it or nothing (PD-51, BR-008)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from orchestrator.cli.checkout import FOLDER
from orchestrator.cli.failures import FAILED, CommandFailed, UsageMistake
from orchestrator.cli.patch import Application, Applied, in_words
from orchestrator.cli.placing import placing
from tests.support.applying import Files, files, job_of, write

BEFORE = {"a.py": b"one\r\ntwo\r\n", "deep/b.bin": b"\0\1\2", "gone.txt": b"x\n"}
AFTER = {"a.py": b"one\r\nTWO\r\n", "deep/b.bin": b"\0\1\3", "new/latin.txt": b"caf\xe9\n"}
LINES = b"".join(b"line %d\n" % number for number in range(40))


async def test_a_patch_changes_makes_and_removes_files_byte_for_byte(tmp_path: Path) -> None:
    job, target = job_of(tmp_path, BEFORE, AFTER), write(tmp_path / "target", BEFORE)
    applied = await job.apply(target)
    assert files(target) == AFTER
    assert (applied.files, applied.merged, job.asked_for_start) == (4, (), 0)
    assert not (target / FOLDER).exists()


async def test_a_check_says_how_it_would_go_and_changes_nothing(tmp_path: Path) -> None:
    job, target = job_of(tmp_path, BEFORE, AFTER), write(tmp_path / "target", BEFORE)
    assert (await job.apply(target, check=True)).files == 4
    assert files(target) == BEFORE
    with pytest.raises(CommandFailed, match=r"gone\.txt: changed here"):
        await job.apply(write(target, {"gone.txt": b"mine\n"}), check=True)


@pytest.mark.parametrize("place", ["sub", "sub/with:colon"])
async def test_in_a_repositorys_subdirectory_paths_start_there(tmp_path: Path, place: str) -> None:
    repo = tmp_path / "repo"
    write(repo / place, BEFORE)
    write(repo, {"a.py": b"another\n"})
    subprocess.run(["git", "init", "--quiet", str(repo)], check=True)  # noqa: ASYNC221
    await job_of(tmp_path, BEFORE, AFTER).apply(repo / place)
    assert files(repo / place) == AFTER
    assert (repo / "a.py").read_bytes() == b"another\n"


async def test_another_users_checkout_takes_it_too(tmp_path: Path) -> None:
    repo = write(tmp_path / "repo", BEFORE)
    subprocess.run(["git", "init", "--quiet", str(repo)], check=True)  # noqa: ASYNC221
    os.chown(repo, 4321, 4321)
    await job_of(tmp_path, BEFORE, AFTER).apply(repo)
    assert files(repo) == AFTER


async def test_what_changed_here_in_other_places_is_kept_and_named(tmp_path: Path) -> None:
    """Edited by both, renamed by the job and edited here, made by both alike; unconcerned files stay."""
    before = {"both": LINES, "moved": LINES, "other": b"o\n"}
    theirs = {
        "both": LINES.replace(b"line 2\n", b"LINE 2\n"),
        "moved to": LINES,
        "same": b"s\n",
        "other": b"o\n",
    }
    ours = {
        "both": LINES.replace(b"line 30\n", b"LINE 30\n"),
        "moved": LINES.replace(b"line 7\n", b"LINE 7\n"),
        "same": b"s\n",
        "other": b"mine\n",
        "mine": b"m\n",
    }
    job, target = job_of(tmp_path, before, theirs), write(tmp_path / "target", ours)
    applied = await job.apply(target)
    assert files(target) == {
        "both": LINES.replace(b"line 2\n", b"LINE 2\n").replace(b"line 30\n", b"LINE 30\n"),
        "moved to": LINES.replace(b"line 7\n", b"LINE 7\n"),
        "same": b"s\n",
        "other": b"mine\n",
        "mine": b"m\n",
    }
    assert applied.merged == ("both", "moved")
    assert applied.written == ("both", "moved to")


CONFLICTS: dict[str, tuple[Files, str]] = {
    "edited": ({"f": b"mine\n"}, "f"),
    "deleted": ({}, "f"),
    "made": ({"f": b"a\n", "new": b"mine\n"}, "new"),
    "made binary": ({"f": b"a\n", "new": b"\0mine"}, "new"),
    "a link": ({"f": b"->elsewhere"}, "f"),
    "a folder": ({"f/x": b"x\n"}, "f"),
    "no folder": ({"f": b"a\n", "d": b"mine\n"}, "d"),
}


@pytest.mark.parametrize("kind", CONFLICTS)
async def test_what_both_changed_in_one_place_is_named_and_nothing_happens(tmp_path: Path, kind: str) -> None:
    here, named = CONFLICTS[kind]
    job = job_of(tmp_path, {"f": b"a\n"}, {"f": b"b\n", "new": b"new\n", "d/e": b"e\n", "free": b"free\n"})
    target = write(tmp_path / "target", here)
    with pytest.raises(CommandFailed, match="nothing was changed") as caught:
        await job.apply(target)
    assert named in caught.value.message
    assert caught.value.exit_code == FAILED
    assert files(target) == here
    assert not (target / FOLDER).exists()


async def test_applying_again_finds_everything_there(tmp_path: Path) -> None:
    job, target = job_of(tmp_path, BEFORE, AFTER), write(tmp_path / "target", BEFORE)
    await job.apply(target)
    assert (await job.apply(target)).files == 0
    assert files(target) == AFTER


async def test_files_become_folders_and_folders_become_files(tmp_path: Path) -> None:
    before = {"a": b"a\n", "d/x": b"x\n", "d/e/y": b"y\n"}
    after = {"a/b/c": b"c\n", "d": b"d\n"}
    target = write(tmp_path / "target", before)
    await job_of(tmp_path, before, after).apply(target)
    assert files(target) == after


async def test_a_folder_with_files_that_the_job_did_not_know_stays(tmp_path: Path) -> None:
    job = job_of(tmp_path, {"d/x": b"x\n"}, {"d": b"d\n"})
    target = write(tmp_path / "target", {"d/x": b"x\n", "d/mine": b"m\n"})
    with pytest.raises(CommandFailed, match="'d' is a folder here, with files such as 'd/mine'"):
        await job.apply(target)
    assert files(target) == {"d/x": b"x\n", "d/mine": b"m\n"}


async def test_a_folder_goes_with_its_last_file_and_not_before(tmp_path: Path) -> None:
    before = {"d/e/x": b"x\n", "f/x": b"x\n"}
    target = write(tmp_path / "target", before | {"f/mine": b"m\n"})
    await job_of(tmp_path, before, {}).apply(target)
    assert not (target / "d").exists()
    assert files(target) == {"f/mine": b"m\n"}


async def test_a_files_own_permissions_stay_and_the_right_to_run_it_comes_and_goes(tmp_path: Path) -> None:
    job = job_of(tmp_path, {"private": b"a\n", "script": b"a\n"}, {"private": b"b\n", "script": b"b\n"})
    job.patch = job.patch.replace(
        b"diff --git a/script b/script\n", b"diff --git a/script b/script\nold mode 100644\nnew mode 100755\n"
    ).replace(b" 100644\n--- a/script", b"\n--- a/script")
    target = write(tmp_path / "target", {"private": b"a\n", "script": b"a\n"})
    (target / "private").chmod(0o600)
    (target / "script").chmod(0o640)
    await job.apply(target)
    assert files(target) == {"private": b"b\n", "script": b"b\n"}
    assert [(target / name).stat().st_mode & 0o777 for name in ("private", "script")] == [0o600, 0o750]


@pytest.mark.parametrize(
    "path",
    [
        *("../outside", ".git/hooks/post-checkout", "/etc/portside-test", ".GIT/x"),
        *(
            "git~1/config",
            ".git./config",
            ".git /config",
            ".g\u200cit/config",
            ".git::$INDEX_ALLOCATION/config",
        ),
    ],
)
async def test_a_patch_stays_in_the_workspace_and_out_of_its_history(tmp_path: Path, path: str) -> None:
    header = f"diff --git a/{path} b/{path}\nnew file mode 100755\n--- /dev/null\n+++ b/{path}\n"
    job = job_of(tmp_path, {}, {})
    job.patch = f"{header}@@ -0,0 +1 @@\n+x\n".encode()
    target = tmp_path / "target"
    target.mkdir()
    subprocess.run(["git", "init", "--quiet", str(target)], check=True)  # noqa: ASYNC221
    with pytest.raises(CommandFailed, match="nothing was changed"):
        await job.apply(target)
    assert not (tmp_path / "outside").exists()
    assert not (target / ".git/hooks/post-checkout").exists()


async def test_a_patch_never_writes_through_a_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    target = write(tmp_path / "target", {"link": f"->{outside}".encode()})
    with pytest.raises(CommandFailed, match="nothing was changed"):
        await job_of(tmp_path, {}, {"link/x": b"x\n"}).apply(target)
    assert list(outside.iterdir()) == []


async def test_an_empty_patch_changes_nothing_and_needs_no_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_of(tmp_path, {}, {})
    monkeypatch.setenv("PATH", str(tmp_path))
    job.patch = b"\n"
    assert (await job.apply(tmp_path)).files == 0


async def test_a_directory_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageMistake, match="is not a directory"):
        await job_of(tmp_path, BEFORE, AFTER).apply(tmp_path / "nowhere")


async def test_what_is_no_patch_is_an_error(tmp_path: Path) -> None:
    job = job_of(tmp_path, {}, {})
    job.patch = b"nothing that git knows\n"
    with pytest.raises(CommandFailed, match="No valid patches"):
        await job.apply(tmp_path)


async def test_two_do_not_apply_to_one_directory_at_once(tmp_path: Path) -> None:
    job, target = job_of(tmp_path, BEFORE, AFTER), write(tmp_path / "target", BEFORE)
    with placing(target):
        with pytest.raises(CommandFailed, match="another apply is at work"):
            await job.apply(target)
        assert (target / FOLDER / "lock").exists()
    await job.apply(target)
    assert files(target) == AFTER


def test_what_was_done_is_said_in_a_line(tmp_path: Path) -> None:
    async def none(_to: Path) -> None: ...

    def said(applied: Applied, *, check: bool = False, patch: bytes = b"x") -> str:
        return in_words(applied, Application("j", patch, tmp_path, none, print, check=check))

    assert said(Applied(("a",), ("b",))) == f"applied to {tmp_path}: 2 files"
    assert said(Applied(("a",), merged=("a",)), check=True).endswith("1 file; merged with your changes to a")
    assert said(Applied()) == f"{tmp_path} has all of the job's changes already"
    assert said(Applied(), patch=b"") == "the job changed no files"

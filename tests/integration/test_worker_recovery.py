"""PD-50: the comparison that runs when a worker is gone, by real git."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from worker.errors import WorkspaceError
from worker.recovery import PATCH, recover


@pytest.fixture
def given(tmp_path: Path) -> Path:
    folder = tmp_path / "given"
    folder.mkdir()
    return folder


def put(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def give(given: Path, start: Path | None, left: Path, left_out: list[str] | None = None) -> None:
    for name, root in (("start", start), ("left", left)):
        if root is not None:
            with tarfile.open(given / f"{name}.tar", "w") as tar:
                for path in sorted(root.rglob("*")):
                    tar.add(path, path.relative_to(root), recursive=False)
    (given / "left-out.json").write_text(json.dumps(left_out or []))


def out_of(tmp_path: Path) -> Path:
    out = tmp_path / "out"
    out.mkdir()
    return out


async def test_the_patch_is_what_the_worker_would_have_made(given: Path, tmp_path: Path) -> None:
    """Ignore rules, links out of the workspace and pipes count as they do for a worker that reports."""
    start = put(tmp_path / "start", {"a": "a\n", "gone": "x\n", ".gitignore": "*.log\n", "old.log": "1\n"})
    (start / "outward").symlink_to("/etc/hosts")  # no worker would have unpacked it
    left = put(tmp_path / "left", {"a": "b\n", ".gitignore": "*.log\n", "old.log": "2\n", "new.log": "3\n"})
    (left / "secrets").symlink_to("/etc/shadow")
    give(given, start, left)
    out = out_of(tmp_path)
    patch = await recover(given, out)
    text = (out / PATCH).read_text()
    changed = [line[2:] for line in text.splitlines() if line.startswith("diff")]
    assert [one.split(" b/")[1] for one in changed] == ["a", "gone", "old.log", "secrets"]
    assert "new file mode 120000" in text
    assert "/etc/shadow" in text
    assert "root:" not in text
    assert patch.ignored == ("new.log",)


async def test_files_that_were_left_out_count_as_unchanged(given: Path, tmp_path: Path) -> None:
    start = put(tmp_path / "start", {"big": "large\n", "deep/big": "large\n", "deep/gone/big": "large\n"})
    left = put(tmp_path / "left", {"new": "new\n", "deep/gone": "a file now\n"})
    give(given, start, left, ["big", "deep/big", "deep/gone/big", "brand-new-big"])
    out = out_of(tmp_path)
    await recover(given, out)
    headers = [line for line in (out / PATCH).read_text().splitlines() if line.startswith("diff")]
    assert len(headers) == 3
    assert {"big", "deep/big"}.isdisjoint(line.split(" b/")[1] for line in headers)


async def test_a_start_that_was_empty_makes_everything_new(given: Path, tmp_path: Path) -> None:
    give(given, None, put(tmp_path / "left", {"a": "a\n"}))
    assert (await recover(given, out_of(tmp_path))).files == 1


async def test_an_archive_that_can_not_be_read_is_an_error(given: Path, tmp_path: Path) -> None:
    give(given, None, put(tmp_path / "left", {"a": "a\n"}))
    (given / "left.tar").write_bytes(b"x" * 2000)
    with pytest.raises(WorkspaceError, match="not a readable tar"):
        await recover(given, out_of(tmp_path))


def test_the_program_says_in_one_line_what_it_made_or_why_not(given: Path, tmp_path: Path) -> None:
    give(given, None, put(tmp_path / "left", {"a": "a\n"}))

    def run(name: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / name).mkdir()
        command = [sys.executable, "-m", "worker.recovery", str(given), str(tmp_path / name)]
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path.cwd())}
        return subprocess.run(command, check=False, capture_output=True, text=True, env=environment)

    good = run("good")
    assert json.loads(good.stdout) == {"files": 1, "ignored": [], "unreadable": ""}
    assert (tmp_path / "good" / PATCH).read_text().startswith("diff --git a/a b/a\n")
    (given / "left.tar").unlink()
    bad = run("bad")
    assert (bad.returncode, bad.stdout) == (1, "")
    assert "left.tar" in bad.stderr

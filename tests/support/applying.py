"""A job's patch and a checkout to apply it to, for tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.cli.patch import Application, Applied, apply_patch
from orchestrator.settings import Settings

Files = Mapping[str, bytes]


@dataclass
class JobOf:
    """A job that changed one set of files into another.

    Attributes:
        said: what the apply told.
        asked_for_start: how often the start was wanted.
    """

    tmp_path: Path
    start: Path
    patch: bytes
    said: list[str] = field(default_factory=list[str])
    asked_for_start: int = 0

    async def apply(self, directory: Path, *, check: bool = False) -> Applied:
        async def start(to: Path) -> None:
            self.asked_for_start += 1
            shutil.copyfile(self.start, to)

        asked = Application("the-job", self.patch, directory, start, self.said.append, check=check)
        return await apply_patch(Settings(home=self.tmp_path / "home"), asked)


def job_of(tmp_path: Path, before: Files, after: Files) -> JobOf:
    """The job from one set of files to another, as a worker makes its patch."""
    repo = tmp_path / "made"
    repo.mkdir()
    start = tmp_path / "start.tar"

    def git(*arguments: str) -> bytes:
        identity = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "core.autocrlf=false")
        command = ["git", *identity, *arguments]
        return subprocess.run(command, cwd=repo, check=True, capture_output=True).stdout

    git("init", "--quiet")
    write(repo, before)
    with tarfile.open(start, "w") as tar:
        for name in before:
            tar.add(repo / name, name)
    git("add", "--all", "--force")
    git("commit", "--quiet", "--allow-empty", "--message", "x")
    repo.joinpath("kept by git rm").touch()
    for name in before.keys() - after.keys():
        git("rm", "--quiet", "--", name)
    repo.joinpath("kept by git rm").unlink()
    write(repo, after)
    git("add", "--all", "--force")
    return JobOf(tmp_path, start, git("diff", "--cached", "--binary", "--full-index", "--find-renames"))


def write(root: Path, files: Files) -> Path:
    """Files with their content; one that starts with `->` is a link to what follows."""
    root.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if content.startswith(b"->"):
            place.unlink(missing_ok=True)
            place.symlink_to(os.fsdecode(content[2:]))
        else:
            place.write_bytes(content)
    return root


def files(root: Path) -> dict[str, bytes]:
    """What is there, but for git's own."""
    found: dict[str, bytes] = {}
    for path in root.rglob("*"):
        name = str(path.relative_to(root))
        if ".git" in path.parts:
            continue
        if path.is_symlink():
            found[name] = b"->" + os.fsencode(path.readlink())
        elif path.is_file():
            found[name] = path.read_bytes()
    return found

"""A directory as a job's starting workspace: which files, and their tar."""

from __future__ import annotations

import os
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from orchestrator.cli.failures import CommandFailed, UsageMistake

MAX_FILES = 200_000


@dataclass(frozen=True, slots=True)
class Packed:
    """A packed workspace.

    Attributes:
        files: how many entries the tar has.
    """

    tar: Path
    files: int


def pack(directory: Path, tar: Path, *, include_git: bool = False) -> Packed:
    """Write the workspace's tar.

    In a git work tree `.gitignore` is honoured and `.git` stays out unless asked for; any other directory
    travels whole. Links travel as links; sockets, pipes and devices stay out.

    Raises:
        UsageMistake: the directory does not exist.
        CommandFailed: it has too many files, or can't be read.
    """
    if not directory.is_dir():
        raise UsageMistake(
            f"the workspace {directory} is not a directory; give an existing one to --workspace"
        )
    count = 0
    try:
        with tarfile.open(tar, "w", format=tarfile.PAX_FORMAT) as archive:
            for name in _names(directory, include_git=include_git):
                path = directory / name
                if not (path.is_symlink() or path.is_file() or path.is_dir()):
                    continue  # a socket, pipe or device, or gone since it was listed
                count += 1
                if count > MAX_FILES:
                    raise CommandFailed(
                        f"the workspace has more than {MAX_FILES:,} files; leave some out (.gitignore)"
                    )
                archive.add(path, arcname=name, recursive=False, filter=_without_owner)
    except OSError as error:
        raise CommandFailed(f"the workspace can't be read: {error}") from None
    return Packed(tar, count)


def _without_owner(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 1000
    info.uname = info.gname = ""
    return info


def _names(directory: Path, *, include_git: bool) -> Iterator[str]:
    if include_git and not (directory / ".git").is_dir():
        raise UsageMistake(
            f"{directory} has no .git directory of its own; leave --include-git out, "
            "or give the repository's top directory"
        )
    listed = _git_names(directory)
    if listed is None:
        yield from _walked(directory, skip_git=not include_git)
        return
    yield from listed
    if include_git:
        yield ".git"
        yield from (f".git/{name}" for name in _walked(directory / ".git", skip_git=False))


def _git_names(directory: Path) -> list[str] | None:
    """Tracked and new files of a git work tree, those of repositories inside too; None when it is none.

    A directory that the repository around it ignores is none.
    """
    if _git(directory, "check-ignore", "--quiet", "--", str(directory)) is not None:
        return None
    listed = _git(directory, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if listed is None:
        return None
    names: set[str] = set()
    for raw in listed.split(b"\0"):
        name = os.fsdecode(raw).rstrip("/")
        path = directory / name
        if not name or not os.path.lexists(path):
            continue
        names.add(name)
        if path.is_dir() and not path.is_symlink():  # a submodule, or a repository that is not one yet
            names.update(f"{name}/{inner}" for inner in _git_names(path) or ())
    return sorted(names)


def _git(directory: Path, *arguments: str) -> bytes | None:
    """What git prints; None when it is not installed or says no.

    A checkout may be another user's: nothing that its configuration names is run.
    """
    trusting = ("-c", "safe.directory=*", "-c", "core.fsmonitor=false")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", *trusting, "-C", str(directory), *arguments],
            capture_output=True,
            check=False,
            env=environment,
        )
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None


def _walked(directory: Path, *, skip_git: bool) -> Iterator[str]:
    for folder, folders, files in os.walk(directory):
        folders.sort()
        if skip_git and ".git" in folders:
            folders.remove(".git")
        base = os.path.relpath(folder, directory)
        for name in [*folders, *sorted(files)]:
            yield name if base == "." else os.path.join(base, name)  # noqa: PTH118 - text, not paths

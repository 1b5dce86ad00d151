"""A directory as a job's starting workspace: which files, and their tar as a stream."""

from __future__ import annotations

import heapq
import os
import stat
import subprocess
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.cli.checkout import FOLDER
from orchestrator.cli.failures import CommandFailed, UsageMistake
from orchestrator.cli.visible import one_line
from orchestrator.services.jobs import MAX_WORKSPACE_BYTES

MAX_FILES = 200_000
_CHUNK_BYTES = 256 * 1024
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Workspace:
    """What of a directory travels; nothing is read yet but names and sizes.

    Attributes:
        names: files, links and folders, below the directory.
        size_bytes: of the files' contents.
    """

    directory: Path
    names: Sequence[str]
    size_bytes: int

    def tar(self) -> Iterator[bytes]:
        """The tar, in pieces of about 256 KiB; never more than one of them is held.

        Raises:
            CommandFailed: a file can't be read, or shrinks while it is.
        """
        piece = bytearray()
        try:
            for part in self._parts():
                piece += part
                if len(piece) >= _CHUNK_BYTES:
                    yield bytes(piece)
                    piece.clear()
        except OSError as error:
            raise CommandFailed(f"the workspace can't be read: {error.strerror}: {error.filename}") from None
        yield bytes(piece)

    def _parts(self) -> Iterator[bytes]:
        # Only looks, and knows hard links again: what it would write is made here, a piece at a time.
        with Path(os.devnull).open("wb") as nowhere, tarfile.open(fileobj=nowhere, mode="w") as looking:
            for name in self.names:
                try:
                    info = looking.gettarinfo(self.directory / name, name)
                except FileNotFoundError:
                    continue  # gone since it was listed
                info.uid = info.gid = 1000
                info.uname = info.gname = ""
                yield info.tobuf(tarfile.PAX_FORMAT, tarfile.ENCODING, "surrogateescape")
                if info.isreg() and info.size:
                    yield from _content(self.directory / name, info.size)
        yield b"\0" * (2 * tarfile.BLOCKSIZE)


def look_at(directory: Path, *, include_git: bool = False) -> Workspace:
    """Find what travels.

    In a git work tree `.gitignore` is honoured and `.git` stays out unless asked for; any other directory
    travels whole. Links travel as links; sockets, pipes and devices stay out.

    Raises:
        UsageMistake: the directory does not exist.
        CommandFailed: it has too many files, or too much in them, or can't be read.
    """
    if not directory.is_dir():
        raise UsageMistake(
            f"the workspace {directory} is not a directory; give an existing one to --workspace"
        )
    names: list[str] = []
    size_bytes, largest = 0, list[tuple[int, str]]()
    for name in _names(directory, include_git=include_git):
        found = _looked_up(directory / name)
        if found is None or name.split("/", 1)[0] == FOLDER:
            continue  # a socket, pipe or device, gone since it was listed, or an apply's own
        names.append(name)
        if len(names) > MAX_FILES:
            raise CommandFailed(
                f"the workspace has more than {MAX_FILES:,} files; leave some out (.gitignore)"
            )
        if stat.S_ISREG(found.st_mode):
            size_bytes += found.st_size
            (heapq.heappush if len(largest) < _NAMED else heapq.heappushpop)(largest, (found.st_size, name))
    if size_bytes > MAX_WORKSPACE_BYTES:
        shown = ", ".join(
            f"{one_line(name)} ({size:,} bytes)" for size, name in sorted(largest, reverse=True)
        )
        raise CommandFailed(
            f"the workspace has {size_bytes:,} bytes, more than {MAX_WORKSPACE_BYTES:,}; leave large files "
            f"out (.gitignore). The largest: {shown}"
        )
    return Workspace(directory, names, size_bytes)


def _looked_up(path: Path) -> os.stat_result | None:
    """A file, link or folder; None for anything else."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CommandFailed(f"the workspace can't be read: {error.strerror}: {error.filename}") from None
    kinds = (stat.S_ISREG, stat.S_ISLNK, stat.S_ISDIR)
    return found if any(kind(found.st_mode) for kind in kinds) else None


def _content(path: Path, size: int) -> Iterator[bytes]:
    """So many bytes of a file, padded as a tar has them."""
    left = size
    with path.open("rb") as file:
        while left:
            part = file.read(min(left, _CHUNK_BYTES))
            if not part:
                raise CommandFailed(f"{path} became shorter while it was read; try again")
            left -= len(part)
            yield part
    yield b"\0" * (-size % tarfile.BLOCKSIZE)


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

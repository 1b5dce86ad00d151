"""What the job changed: a git diff against a baseline that lies outside the workspace.

The workspace's own `.git` is neither written nor read, and nothing the workspace or its user configured
(hooks, filters, attributes, line-ending rules) has a say in what is recorded.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from worker.git import Git, said

_CHUNK_BYTES = 1024 * 1024
_COMPARED = ["--cached", "--no-ext-diff", "--no-textconv"]
# What a killed writer of the file tools leaves: new content not yet in place, old content set aside.
_RESIDUES = [f".portside-{'[0-9a-f]' * 16}.{end}" for end in ("tmp", "bak")]


@dataclass(frozen=True, slots=True)
class Patch:
    """The job's changes as one patch file.

    Attributes:
        digest: a `Content-Digest` value of the file.
        files: how many files differ.
        ignored: new paths that the workspace's ignore rules keep out of the patch, at most 20.
        unreadable: what git could not read, in its words; empty when it read everything.
    """

    path: Path
    digest: str
    size_bytes: int
    files: int
    ignored: tuple[str, ...] = ()
    unreadable: str = ""


class Baseline:
    """The workspace's state at the start, in a private git directory."""

    def __init__(self, workspace: Path, state_dir: Path) -> None:
        self._workspace = workspace
        self._git = Git(state_dir / "baseline.git", workspace)
        self._patch = state_dir / "changes.patch"

    async def take(self) -> None:
        """Record the present workspace, ignored files too.

        Raises:
            ChangesFailed: git refused.
        """
        await anyio.to_thread.run_sync(self._take, abandon_on_cancel=True)

    async def diff(self) -> Patch:
        """Everything that changed since `take`: new, deleted, renamed, binary files and modes.

        New files that the workspace's own ignore rules name stay out; the patch says which.

        Raises:
            ChangesFailed: git refused.
        """
        return await anyio.to_thread.run_sync(self._diff, abandon_on_cancel=True)

    async def nothing(self) -> Patch:
        """A patch without changes, for a job whose workspace was never recorded."""
        return await anyio.to_thread.run_sync(self._nothing)

    def _nothing(self) -> Patch:
        self._patch.parent.mkdir(parents=True, exist_ok=True)
        self._patch.write_bytes(b"")
        size, digest = _digest(self._patch)
        return Patch(self._patch, digest, size, 0)

    def _take(self) -> None:
        shutil.rmtree(self._git.git_dir, ignore_errors=True)
        self._git.init(excluded="\n".join([*_RESIDUES, ""]))
        self._add(_files(self._workspace, b""))
        tree = self._git("write-tree").decode().strip()
        (self._git.git_dir / "baseline").write_text(tree, encoding="ascii")

    def _diff(self) -> Patch:
        recorded = self._git.git_dir / "baseline"
        if not recorded.exists():
            return self._nothing()
        tree = recorded.read_text(encoding="ascii")
        unreadable = self._add_present()
        renames = "--find-renames"
        self._show(tree, renames)
        if not self._applies(tree):
            renames = "--no-renames"
            self._show(tree, renames)
        names = self._git("diff", "--name-only", "-z", *_COMPARED, renames, tree)
        by_the_workspace = ["--ignored", "--exclude-per-directory=.gitignore"]
        ignored = self._git("ls-files", "-z", "--others", *by_the_workspace, "--directory")
        size, digest = _digest(self._patch)
        return Patch(
            self._patch,
            digest,
            size,
            names.count(b"\0"),
            tuple(os.fsdecode(name) for name in ignored.split(b"\0")[:20] if name),
            unreadable,
        )

    def _show(self, tree: str, renames: str) -> None:
        with self._patch.open("wb") as target:
            shown = ["--binary", "--full-index", "--no-color", "--src-prefix=a/", "--dst-prefix=b/"]
            self._git("diff", *shown, *_COMPARED, renames, tree, output=target.fileno())

    def _applies(self, tree: str) -> bool:
        """Whether git takes its own patch: it refuses a link that was moved below where it stood."""
        if self._patch.stat().st_size == 0:
            return True
        index = {"GIT_INDEX_FILE": str(self._git.git_dir / "start.index")}
        self._git.run("read-tree", tree, environment=index)
        checked = self._git.run(
            "apply", "--cached", "--check", str(self._patch.absolute()), environment=index
        )
        return checked.returncode == 0

    def _add_present(self) -> str:
        """Bring the index up to the workspace; repositories inside it count as plain folders."""
        added = self._git.run("add", "--all", "--ignore-errors", "--", ".")
        for folder in self._gitlinks():
            self._git("update-index", "--force-remove", "-z", "--stdin", stdin=folder + b"\0")
            self._add(_files(self._workspace, folder))
        if added.returncode == 0:
            return ""
        return said(added)

    def _gitlinks(self) -> Sequence[bytes]:
        lines = self._git("ls-files", "-z", "--stage").split(b"\0")
        return [line.split(b"\t", 1)[1] for line in lines if line.startswith(b"160000 ")]

    def _add(self, names: Iterator[bytes]) -> None:
        self._git("update-index", "-z", "--add", "--stdin", stdin=b"".join(name + b"\0" for name in names))


def _files(workspace: Path, below: bytes) -> Iterator[bytes]:
    """Every file and link below a folder, relative to the workspace, `.git` left out."""
    root = os.fsencode(workspace)
    for folder, folders, names in os.walk(os.path.join(root, below)):  # noqa: PTH118 - bytes paths
        folders[:] = [name for name in folders if name != b".git"]
        linked = [name for name in folders if os.path.islink(os.path.join(folder, name))]  # noqa: PTH114, PTH118
        for name in (*names, *linked):
            path = os.path.join(folder, name)  # noqa: PTH118
            if name != b".git" and (os.path.islink(path) or os.path.isfile(path)):  # noqa: PTH113, PTH114
                yield os.path.relpath(path, root)


def _digest(path: Path) -> tuple[int, str]:
    """Size, and the RFC 9530 digest."""
    size, digest = 0, hashlib.sha256()
    with path.open("rb") as source:
        while chunk := source.read(_CHUNK_BYTES):
            size += len(chunk)
            digest.update(chunk)
    return size, f"sha-256=:{base64.b64encode(digest.digest()).decode()}:"

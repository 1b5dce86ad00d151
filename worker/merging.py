"""`python -m worker.merging names|merge IN OUT`: a job's patch brought onto files that may have moved on.

Only objects of a git directory of its own are made: the user's checkout is neither read nor written here.
`names` prints which paths `IN/changes.patch` touches. `merge` takes `IN/present.tar`, those paths as they are
in the checkout, writes `OUT/result.tar`, what has to be written there, and prints what it found. Where the
patch does not fit and `IN/start.tar`, the job's start, is given, it merges the two. One line of JSON is
printed; names in it may hold lone surrogates, as Python's file names do.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Literal

from worker.archive import unpack
from worker.errors import ChangesFailed, WorkspaceError
from worker.git import Git, said

PATCH = "changes.patch"
RESULT = "result.tar"
_NOBODY = {f"GIT_{who}_{what}": "portside" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}

Outcome = Literal["fits", "merged", "conflict", "unfit"]


@dataclass(slots=True)
class Merge:
    """What came of a patch.

    Attributes:
        outcome: `fits` as it is; `merged` with the changes that were made here; `conflict` with them;
            `unfit`: it does not fit, and there is nothing to merge it by.
        why: git's words, for `unfit`.
        written: paths in `result.tar`; with `deleted` all that has to change.
        merged: paths that both sides changed.
        conflicts: paths that can't be merged.
    """

    outcome: Outcome
    why: str = ""
    written: list[str] = field(default_factory=list[str])
    deleted: list[str] = field(default_factory=list[str])
    merged: list[str] = field(default_factory=list[str])
    conflicts: list[str] = field(default_factory=list[str])


def names(given: Path, out: Path) -> list[str]:
    """Every path that the patch changes, makes or removes, sorted.

    Raises:
        ChangesFailed: it is no patch.
    """
    git = Git(out / "names.git", out)
    git.init()
    patch = str(given.absolute() / PATCH)
    # A patch names where it leads; turned round, where it comes from.
    listed = git("apply", "--numstat", "-z", patch) + git("apply", "--numstat", "-z", "--reverse", patch)
    return sorted({os.fsdecode(line.split(b"\t", 2)[2]) for line in listed.split(b"\0") if line})


def merge(given: Path, out: Path) -> Merge:
    """Bring the patch onto the present files.

    Raises:
        WorkspaceError: an archive can't be used, or git failed.
    """
    patched = _Patched(given, out)
    present = patched.tree_of("present.tar", None)
    fitting = patched.applied()
    if isinstance(fitting, str):
        done = Merge("fits")
        patched.write(done, present, fitting)
        return done
    if not (given / "start.tar").exists():
        return Merge("unfit", why=said(fitting))
    return patched.merged(present)


class _Patched:
    """Trees of one git directory."""

    def __init__(self, given: Path, out: Path) -> None:
        self._given = given
        self._out = out
        self._git = Git(out / "merging.git", out)
        self._git.init()

    def tree_of(self, archive: str, wanted: Iterable[str] | None) -> str:
        """The tree of an archive's files, or of those that are wanted; the index holds it."""
        root = self._out / archive.removesuffix(".tar")
        unpack(self._given / archive, root, every_link=True)
        git = Git(self._git.git_dir, root)
        paths = _files(root) if wanted is None else (name for name in wanted if _is_file(root / name))
        listed = b"".join(os.fsencode(name) + b"\0" for name in paths)
        git("read-tree", "--empty")
        git("update-index", "-z", "--add", "--stdin", stdin=listed)
        return git("write-tree").decode().strip()

    def applied(self) -> str | subprocess.CompletedProcess[bytes]:
        """The index's tree with the patch in it, or what git said against it."""
        patch = str(self._given.absolute() / PATCH)
        done = self._git.run("apply", "--cached", "--whitespace=nowarn", patch)
        return self._git("write-tree").decode().strip() if done.returncode == 0 else done

    def merged(self, present: str) -> Merge:
        """The patch on the start, merged with the present."""
        touched = names(self._given, self._out)
        start = self.tree_of("start.tar", touched)
        theirs = self.applied()
        if not isinstance(theirs, str):
            return Merge("unfit", why=said(theirs))
        base = self._commit(start)
        sides = (self._commit(present, base), self._commit(theirs, base))
        done = self._git.run("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", *sides)
        if done.returncode not in {0, 1}:
            raise ChangesFailed(f"git merge-tree failed ({done.returncode}): {said(done)}")
        tree, *conflicts = [part for part in done.stdout.split(b"\0") if part]
        if done.returncode == 1:
            return Merge("conflict", conflicts=sorted(map(os.fsdecode, set(conflicts))))
        result = Merge("merged")
        both = (
            self._changed(start, present)
            & self._changed(start, theirs)
            & self._changed(present, tree.decode())
        )
        result.merged = sorted(both)
        self.write(result, present, tree.decode())
        return result

    def write(self, done: Merge, present: str, result: str) -> None:
        """Put what differs from the present into the result's archive."""
        listed = self._git("diff-tree", "-r", "-z", "--raw", "--no-renames", "--full-index", present, result)
        fields = iter(listed.split(b"\0"))
        entries: list[tuple[bytes, bytes, str]] = []
        for head, name in zip(fields, fields, strict=False):
            _, mode, _, blob, _ = head.split(b" ")
            if mode == b"000000":
                done.deleted.append(os.fsdecode(name))
            else:
                entries.append((mode, blob, os.fsdecode(name)))
        done.written = [name for _, _, name in entries]
        with tarfile.open(self._out / RESULT, "w", format=tarfile.PAX_FORMAT) as tar:
            self._pack(tar, entries)

    def _pack(self, tar: tarfile.TarFile, entries: list[tuple[bytes, bytes, str]]) -> None:
        wanted = b"".join(blob + b"\n" for _, blob, _ in entries)
        asked = self._out / "wanted"
        asked.write_bytes(wanted)
        with asked.open("rb") as stdin, self._git.stream("cat-file", "--batch", stdin=stdin) as batch:
            assert batch.stdout is not None
            for mode, _, name in entries:
                _add(tar, mode, name, batch.stdout)

    def _commit(self, tree: str, *parents: str) -> str:
        above = [part for parent in parents for part in ("-p", parent)]
        done = self._git.run("commit-tree", tree, *above, "-m", "x", environment=_NOBODY)
        if done.returncode != 0:
            raise ChangesFailed(f"git commit-tree failed ({done.returncode}): {said(done)}")
        return done.stdout.decode().strip()

    def _changed(self, one: str, other: str) -> set[str]:
        listed = self._git("diff-tree", "-r", "-z", "--name-only", "--no-renames", one, other)
        return {os.fsdecode(name) for name in listed.split(b"\0") if name}


def _add(tar: tarfile.TarFile, mode: bytes, name: str, blobs: IO[bytes]) -> None:
    size = int(blobs.readline().split()[2])
    info = tarfile.TarInfo(name)
    if mode == b"120000":
        info.type, info.linkname = tarfile.SYMTYPE, os.fsdecode(blobs.read(size))
        tar.addfile(info)
    else:
        info.size, info.mode = size, 0o755 if mode == b"100755" else 0o644
        tar.addfile(info, blobs)
    blobs.read(1)  # the line's end after each object


def _files(root: Path) -> Iterable[str]:
    for path in root.rglob("*"):
        if _is_file(path):
            yield str(path.relative_to(root))


def _is_file(path: Path) -> bool:
    return path.is_symlink() or path.is_file()


def main(argv: Sequence[str]) -> int:
    """Answers the exit code; what went wrong is on standard error."""
    what, given, out = argv[0], Path(argv[1]), Path(argv[2])
    try:
        answer = names(given, out) if what == "names" else asdict(merge(given, out))
    except (WorkspaceError, OSError) as error:
        print(error, file=sys.stderr)  # noqa: T201 - read by whoever started it
        return 1
    print(json.dumps(answer))  # noqa: T201 - as above
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""PD-13, PD-50, PD-51: any tree, any edits: out as a patch, by a worker or after its death, and back again."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.cli.checkout import pack_present
from orchestrator.cli.placing import placing
from worker.changes import Baseline
from worker.merging import PATCH, RESULT, merge, names
from worker.recovery import recover

PARTS = [
    b"a",
    b"b",
    b"sp ace",
    b"new\nline",
    b'q"uote',
    b"back\\slash",
    b"latin\xe9",
    "ü".encode(),
    b"-x",
    b"tab\t",
]
LINES = b"".join(b"line %d\n" % number for number in range(30))
CONTENTS = [
    b"",
    b"a\n",
    b"a",
    b"a\r\nb\r\n",
    b"\0\1\2" * 50,
    LINES,
    LINES.replace(b"line 7\n", b"7\r\n"),
    LINES[:-1],
]
FILES = st.tuples(st.sampled_from(["file", "program"]), st.sampled_from(CONTENTS))
# Of links in a circle a worker unpacks none.
LINKS = st.tuples(st.just("link"), st.sampled_from([b"nowhere", b"no/where", b"no\xe9"]))
PATHS = st.lists(st.sampled_from(PARTS), min_size=1, max_size=3).map(b"/".join)

Entry = tuple[str, bytes]
Tree = Mapping[bytes, Entry]


def without_clashes(drawn: Tree) -> Tree:
    """Nothing lies below what is no folder."""
    kept: dict[bytes, Entry] = {}
    for path in sorted(drawn):
        parts = path.split(b"/")
        if not any(b"/".join(parts[:depth]) in kept for depth in range(1, len(parts))):
            kept[path] = drawn[path]
    return kept


TREES = st.dictionaries(PATHS, FILES | LINKS, max_size=7).map(without_clashes)


@st.composite
def edits(draw: st.DrawFn) -> tuple[Tree, Tree]:
    """A tree, and what became of it: kept, moved, edited and deleted files, and new ones."""
    before, after = draw(TREES), dict(draw(TREES))
    for path, entry in before.items():
        fate = draw(st.sampled_from(["kept", "kept", "moved", "edited", "gone"]))
        if fate == "kept":
            after[path] = entry
        elif fate == "moved":
            after[draw(PATHS)] = entry
        elif fate == "edited":
            after[path] = draw(FILES | LINKS)
    return before, without_clashes(after)


def make(root: Path, tree: Tree) -> None:
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    for path, (kind, data) in tree.items():
        place = root / os.fsdecode(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        if kind == "link":
            place.symlink_to(os.fsdecode(data))
        else:
            place.write_bytes(data)
            place.chmod(0o755 if kind == "program" else 0o644)


def seen(root: Path) -> dict[bytes, Entry]:
    found: dict[bytes, Entry] = {}
    for path in root.rglob("*"):
        name = os.fsencode(path.relative_to(root))
        if path.is_symlink():
            found[name] = ("link", os.fsencode(path.readlink()))
        elif path.is_file():
            found[name] = ("program" if path.stat().st_mode & 0o100 else "file", path.read_bytes())
    return found


def packed(root: Path, tar: Path) -> None:
    with tarfile.open(tar, "w") as archive:
        for path in sorted(root.rglob("*")):
            archive.add(path, path.relative_to(root), recursive=False)


async def patches(folder: Path, before: Tree, after: Tree) -> tuple[bytes, bytes]:
    """The worker's own, and the one that is made when it is gone."""
    given, out, tree = folder / "left", folder / "out", folder / "tree"
    given.mkdir()
    out.mkdir()
    make(tree, before)
    packed(tree, given / "start.tar")
    baseline = Baseline(tree, folder / "state")
    await baseline.take()
    make(tree, after)
    packed(tree, given / "left.tar")
    (given / "left-out.json").write_text(json.dumps([]))
    await recover(given, out)
    return (await baseline.diff()).path.read_bytes(), (out / PATCH).read_bytes()


def apply(folder: Path, patch: bytes, target: Path) -> None:
    given, out = folder / "given", folder / "merging"
    given.mkdir()
    out.mkdir()
    (given / PATCH).write_bytes(patch)
    stamps = pack_present(target, names(given, out), given / "present.tar")
    found = merge(given, out)
    assert found.outcome == "fits", found
    with placing(target) as place:
        place.place("job", out / RESULT, found.deleted, stamps)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(edits())
def test_what_came_out_as_a_patch_is_there_again_when_it_is_applied(edited: tuple[Tree, Tree]) -> None:
    before, after = edited
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        by_the_worker, recovered = asyncio.run(patches(folder, before, after))
        assert recovered == by_the_worker
        target = folder / "target"
        make(target, before)
        if by_the_worker:
            apply(folder, by_the_worker, target)
        assert seen(target) == after

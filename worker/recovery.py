"""`python -m worker.recovery IN OUT`: the changes of a job whose worker is gone.

Runs alone in a sealed container of its own: what a job left is opened nowhere else. `IN` holds `left.tar`,
what was in the workspace at the end; `start.tar`, what was in it at the start, unless that was nothing; and
`left-out.json`, the names that are in the workspace and not in `left.tar`. `OUT/changes.patch` is made, and
one line of JSON is printed.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import anyio

from worker.archive import unpack
from worker.changes import Baseline, Patch
from worker.errors import WorkspaceError

PATCH = "changes.patch"


async def recover(given: Path, out: Path) -> Patch:
    """The patch from the start to what was left, as the worker would have made it.

    Raises:
        WorkspaceError: an archive can't be used, or git refused.
    """
    tree = out / "tree"
    baseline = Baseline(tree, out / "state")
    tree.mkdir()
    start = given / "start.tar"
    if start.exists():
        await anyio.to_thread.run_sync(unpack, start, tree)
    await baseline.take()
    await anyio.to_thread.run_sync(_replace, tree, given)
    patch = await baseline.diff()
    patch.path.replace(out / PATCH)
    return patch


def _replace(tree: Path, given: Path) -> None:
    """Put what was left in the start's place; files that were left out count as unchanged."""
    names: list[str] = json.loads((given / "left-out.json").read_bytes())
    before = tree.with_name("before")
    tree.rename(before)
    unpack(given / "left.tar", tree, every_link=True)
    for name in names:
        kept, place = before / name, tree / name
        if kept.is_file() and not kept.is_symlink() and _free(place, tree):
            place.parent.mkdir(parents=True, exist_ok=True)
            kept.replace(place)
    shutil.rmtree(before)


def _free(place: Path, tree: Path) -> bool:
    """Nothing is there, and no link or file on the way to it."""
    if place.is_symlink() or place.exists():
        return False
    between: Iterable[Path] = list(place.parents)[: len(place.relative_to(tree).parents) - 1]
    return all(one.is_dir() and not one.is_symlink() for one in between if one.exists() or one.is_symlink())


def main(argv: Sequence[str]) -> int:
    """Answers the exit code; what went wrong is on standard error."""
    given, out = map(Path, argv)
    try:
        patch = anyio.run(recover, given, out)
    except (WorkspaceError, OSError) as error:
        print(error, file=sys.stderr)  # noqa: T201 - read by whoever started the container
        return 1
    said = {"files": patch.files, "ignored": patch.ignored, "unreadable": patch.unreadable}
    print(json.dumps(said))  # noqa: T201 - as above
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

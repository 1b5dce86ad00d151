"""The same patches give what independent programs make of them (PD-9): an SDK's reader, and git."""

from __future__ import annotations

import difflib
import subprocess
import tempfile
from pathlib import Path

from agents.apply_diff import apply_diff
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from worker.tools.apply_patch import ApplyPatch
from worker.tools.refusal import Refused
from worker.tools.workspace_paths import Workspace

UNSURE = {"ambiguous_hunk", "no_context"}
_LINE = st.sampled_from(
    ["", "a", "b", "  c", "\td", "}", "def f():", "def g():", "x = 1", "café", "-- e", "@@ g"]
)
_FILE = st.lists(_LINE, min_size=1, max_size=14)


def ours(file: str, patch: str) -> tuple[str | None, str]:
    """What our tool makes of a file `f`, or None and why not."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        (root / "f").write_bytes(file.encode())
        try:
            ApplyPatch(Workspace(root)).apply(patch)
        except Refused as refused:
            assert (root / "f").read_bytes() == file.encode()
            return None, refused.code
        return (root / "f").read_bytes().decode(), ""


def edited(draw: st.DrawFn, old: list[str]) -> list[str]:
    """The lines with a few of them removed, replaced or added to."""
    new: list[str] = []
    for line in old:
        step = draw(st.sampled_from(["keep"] * 5 + ["drop", "replace", "add"]))
        if step in {"keep", "add"}:
            new.append(line)
        if step in {"replace", "add"}:
            new.append(draw(_LINE))
    return new


@st.composite
def edits(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    old = draw(_FILE)
    return old, edited(draw, old)


def hunks(old: list[str], new: list[str], context: int) -> tuple[list[str], bool]:
    """The differences as hunks of the `*** Begin Patch` format, and whether the last one is at the end."""
    rows: list[str] = []
    end = 0
    for group in difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(context):
        rows.append("@@")
        for tag, start, end, new_start, new_end in group:
            kept = tag == "equal"
            rows += [f"{' ' if kept else '-'}{line}" for line in old[start:end]]
            rows += [] if kept else [f"+{line}" for line in new[new_start:new_end]]
    return rows, end == len(old)


@settings(deadline=None, max_examples=300)
@given(pair=edits(), context=st.integers(1, 4), at_end=st.booleans())
def test_begin_patch_agrees_with_an_independent_reader(
    pair: tuple[list[str], list[str]], *, context: int, at_end: bool
):
    """BR-012, BR-017, BR-020: equal where both take it; where ours is not sure, it says so."""
    old, new = pair
    assume(old != new and new)
    body, is_at_end = hunks(old, new, context)
    if at_end and is_at_end:
        body.append("*** End of File")
    file = "\n".join(old) + "\n"
    patch = "\n".join(["*** Begin Patch", "*** Update File: f", *body, "*** End Patch"])
    made, code = ours(file, patch)
    try:
        theirs = apply_diff(file, "\n".join(body))
    except ValueError:
        theirs = None
    event(f"ours {code or 'applied'}, theirs {'refused' if theirs is None else 'applied'}")
    if made is None:
        assert code in UNSURE
    elif made != "\n".join(new) + "\n":
        # A hunk without enough context may fit elsewhere only; then both have to read it alike.
        assert theirs == made
    if made is not None and theirs is not None and theirs != made:
        assert made == "\n".join(new) + "\n"


@settings(deadline=None, max_examples=200)
@given(pair=edits(), context=st.integers(1, 3), noise=st.lists(_LINE, max_size=4), place=st.integers(0, 14))
def test_a_diff_on_a_file_that_moved_on_agrees_with_git(
    pair: tuple[list[str], list[str]], context: int, noise: list[str], place: int
):
    """BR-012, BR-021: lines came in between; where git and ours both apply, the bytes are the same.

    Git takes the nearest place where several fit; ours refuses, or the patch states the very line.
    """
    old, new = pair
    assume(old != new and new)
    moved_on = [*old[:place], *noise, *old[place:]]
    diff = "".join(f"{row}\n" for row in difflib.unified_diff(old, new, "a/f", "b/f", n=context, lineterm=""))
    file = "\n".join(moved_on) + "\n"
    made, code = ours(file, diff)
    theirs = by_git(file, diff)
    event(f"ours {code or 'applied'}, git {'refused' if theirs is None else 'applied'}")
    if not noise:
        assert theirs == "\n".join(new) + "\n"
        assert made == theirs
    if made is not None and theirs is not None and made != theirs:
        event("elsewhere")
        # Only where several places fit and the patch names one of them by its number.
        assert sorted(made) == sorted(theirs)


def by_git(file: str, diff: str) -> str | None:
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "f").write_bytes(file.encode())
        done = subprocess.run(
            ["git", "apply", "-"], cwd=directory, input=diff.encode(), capture_output=True, check=False
        )
        return (Path(directory) / "f").read_bytes().decode() if done.returncode == 0 else None

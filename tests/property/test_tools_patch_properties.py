"""What holds for every patch."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.support.text_files import Style, begin_patch, lines, styles, unified
from tool_registry.output import ToolOutput
from worker.tools.apply_patch import ApplyPatch
from worker.tools.workspace_paths import Workspace


class directory(tempfile.TemporaryDirectory[str]):  # noqa: N801 - reads as a function
    """A directory for one example."""

    def __enter__(self) -> Path:  # type: ignore[override] - a Path is what the tests need
        return Path(super().__enter__())


def apply(root: Path, patch: str) -> ToolOutput:
    """Apply a patch in this thread."""
    from worker.tools.refusal import Refused

    try:
        return ApplyPatch(Workspace(root)).apply(patch)
    except Refused as refused:
        return refused.output()


def picture(root: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(root)): (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in root.rglob("*")
    }


@settings(deadline=None, max_examples=150)
@given(old=lines, new=lines, style=styles)
def test_begin_patch_turns_old_into_new(old: list[str], new: list[str], style: Style):
    """BR-001, BR-003, BR-015: endings, mark, encoding and final newline are the file's own.

    With the last line deleted, the line before it keeps its newline: it was not touched.
    """
    assume(old != new and old and new and old[-1] and new[-1])
    assume(style.encoding != "latin-1" or "caf\u00e9" in old)  # else the file does not show its encoding
    assume(len(old) > 1 or style.final_newline or style.ending == "\n")  # else the file shows no line ending
    with directory() as root:
        (root / "f").write_bytes(style.store(old))
        output = apply(root, begin_patch(old, new, "f"))
        assert not output.is_error, output.result
        result = (root / "f").read_bytes()
        bare = Style(style.ending, final_newline=True, encoding=style.encoding)
        assert result in {style.store(new), bare.store(new)}
        if style.final_newline:
            assert result == style.store(new)


texts = st.builds(
    "".join,
    st.lists(
        st.tuples(
            st.sampled_from(["", "a", "b", "end", "--", "++ x", "caf\u00e9", " y\t"]),
            st.sampled_from(["\n", "\r\n"]),
        ).map("".join),
        max_size=12,
    ),
).flatmap(lambda text: st.sampled_from([text, text + "last", text + "cr\rin"]))


@settings(deadline=None, max_examples=150)
@given(old=texts, new=texts, mark=st.sampled_from([b"", b"\xef\xbb\xbf"]))
def test_unified_diff_turns_old_into_new_byte_for_byte(old: str, new: str, mark: bytes):
    """BR-001, BR-003, BR-015: mixed endings, lone carriage returns, any final newline."""
    assume(old != new and old and new)
    with directory() as root:
        (root / "f").write_bytes(mark + old.encode())
        output = apply(root, unified(old, new, "f"))
        assert not output.is_error, output.result
        assert (root / "f").read_bytes() == mark + new.encode()


@settings(deadline=None, max_examples=60)
@given(old=texts, new=texts)
def test_unified_diff_agrees_with_git_apply(old: str, new: str):
    """The same diffs give the same bytes as `git apply`."""
    assume(old != new)
    with directory() as root:
        ours, theirs = root / "ours", root / "theirs"
        for side in (ours, theirs):
            side.mkdir()
            (side / "old").write_bytes(old.encode())
            (side / "f").write_bytes(old.encode())
        (root / "new").write_bytes(new.encode())
        command = ["git", "-c", "core.autocrlf=false", "diff", "--no-index", "--no-prefix", "--text"]
        made = subprocess.run(
            [*command, "ours/old", "new"], cwd=root, capture_output=True, check=False
        ).stdout
        diff = made.decode().replace("ours/old", "a/f").replace(" new", " b/f")
        (root / "diff").write_bytes(diff.encode())
        subprocess.run(["git", "apply", "--whitespace=nowarn", "../diff"], cwd=theirs, check=True)
        output = apply(ours, diff)
        assert not output.is_error, output.result
        assert (ours / "f").read_bytes() == (theirs / "f").read_bytes() == new.encode()


@settings(deadline=None, max_examples=100)
@given(old=lines, new=lines, cut=st.integers(0, 400), noise=st.text(max_size=20), place=st.integers(0, 400))
def test_failed_patch_changes_nothing(old: list[str], new: list[str], cut: int, noise: str, place: int):
    """BR-008: whatever is wrong with it, not a bit differs."""
    assume(old and new)
    with directory() as root:
        (root / "f").write_bytes("\n".join(old).encode())
        (root / "g").write_bytes(b"g\n")
        before = picture(root)
        good = (
            begin_patch(["g"], ["h"], "g").removesuffix("*** End Patch")
            + begin_patch(old, new, "f").split("\n", 1)[1]
        )
        damaged = good[:place] + noise + good[place:]
        output = apply(root, damaged[: len(damaged) - cut])
        if output.is_error:
            assert picture(root) == before
        else:
            assert picture(root) != before


names = st.sampled_from(["a", "b", "c", "l1", "l2", "..", "."])
link_targets = st.lists(
    st.sampled_from(["a", "b", "l1", "l2", "..", "../..", "/etc"]), min_size=1, max_size=3
).map("/".join)


@settings(deadline=None, max_examples=150)
@given(
    links=st.lists(st.tuples(st.sampled_from(["l1", "l2", "a/l1", "a/b/l2"]), link_targets), max_size=4),
    path=st.lists(names, min_size=1, max_size=6).map("/".join),
    absolute=st.booleans(),
)
def test_no_path_leaves_the_workspace(links: list[tuple[str, str]], path: str, *, absolute: bool):
    """BR-010, BR-011, BR-046: under any links and dots nothing outside is made or changed."""
    with directory() as base:
        root = base / "x" / "workspace"
        (root / "a" / "b").mkdir(parents=True)
        (base / "x" / "c").write_text("outside\n")
        for name, target in links:
            place = root / name
            if not place.is_symlink() and not place.exists() and place.parent.is_dir():
                place.symlink_to(target)
        outside = {
            where: data for where, data in picture(base).items() if not where.startswith("x/workspace/")
        }
        text = f"{root}/{path}" if absolute else path
        apply(root, f"*** Begin Patch\n*** Add File: {text}\n+new\n*** End Patch")
        apply(root, f"*** Begin Patch\n*** Update File: {text}\n@@\n-outside\n+owned\n*** End Patch")
        apply(root, f"*** Begin Patch\n*** Delete File: {text}\n*** End Patch")
        after = {where: data for where, data in picture(base).items() if not where.startswith("x/workspace/")}
        assert after == outside

"""The reported faults of patch tools, and their kinds (PD-9)."""

from __future__ import annotations

import pytest

from tests.support.patches import patch, update
from tests.support.tool_workspace import DirectoryWorkspace, ToolWorkspace
from worker.tools.patch_commit import commit
from worker.tools.patch_format import parse_patch
from worker.tools.patch_plan import PatchPlan
from worker.tools.refusal import Refused
from worker.tools.workspace_paths import Workspace


async def test_crlf_file_stays_crlf_under_an_lf_patch(tool_workspace: ToolWorkspace):
    """BR-001: the file's own line endings win over those of the patch."""
    tool_workspace.put("app.bat", "@echo off\r\nset A=1\r\nset B=2\r\necho done\r\n")
    await tool_workspace.result(
        "apply_patch",
        patch=update("app.bat", "@@", " set A=1", "-set B=2", "+set B=20", "+set C=30", " echo done"),
    )
    assert tool_workspace.get("app.bat") == b"@echo off\r\nset A=1\r\nset B=20\r\nset C=30\r\necho done\r\n"


async def test_crlf_patch_text_on_an_lf_file_leaves_it_lf(tool_workspace: ToolWorkspace):
    """BR-001, BR-018: CRLF as the patch's transport is not content."""
    tool_workspace.put("a.txt", "one\ntwo\n")
    text = update("a.txt", "@@", " one", "-two", "+2", "+3").replace("\n", "\r\n")
    await tool_workspace.result("apply_patch", patch=text)
    assert tool_workspace.get("a.txt") == b"one\n2\n3\n"


async def test_mixed_file_changes_no_other_line_ending(tool_workspace: ToolWorkspace):
    """BR-001: context is byte-identical, and a replaced line keeps its own ending."""
    tool_workspace.put("m.txt", "a\r\nb\nc\r\nd\r\n")
    await tool_workspace.result("apply_patch", patch=update("m.txt", "@@", " a", "-b", "+B", " c"))
    assert tool_workspace.get("m.txt") == b"a\r\nB\nc\r\nd\r\n"


async def test_old_mac_line_endings_survive(tool_workspace: ToolWorkspace):
    """BR-001: a file of lone carriage returns has lines too."""
    tool_workspace.put("mac.txt", "a\rb\rc\r")
    await tool_workspace.result("apply_patch", patch=update("mac.txt", "@@", " a", "-b", "+B"))
    assert tool_workspace.get("mac.txt") == b"a\rB\rc\r"


async def test_unified_diff_in_lf_applies_to_a_crlf_file(tool_workspace: ToolWorkspace):
    """BR-001: the same holds for the other format."""
    tool_workspace.put("w.txt", "a\r\nb\r\nc\r\n")
    diff = "--- a/w.txt\n+++ b/w.txt\n@@ -1,3 +1,4 @@\n a\n-b\n+B\n+B2\n c\n"
    output = await tool_workspace.result("apply_patch", patch=diff)
    assert tool_workspace.get("w.txt") == b"a\r\nB\r\nB2\r\nc\r\n"
    assert output["files"][0]["matched"] == "line endings ignored"


async def test_missing_final_newline_stays_missing(tool_workspace: ToolWorkspace):
    """BR-003: an edit far from the end does not touch the end."""
    tool_workspace.put("strings.json", '{\n  "v": 1\n}')
    output = await tool_workspace.result(
        "apply_patch", patch=update("strings.json", "@@", " {", '-  "v": 1', '+  "v": 2')
    )
    assert tool_workspace.get("strings.json") == b'{\n  "v": 2\n}'
    assert output["files"] == [
        {"path": "strings.json", "action": "updated", "lines_added": 1, "lines_removed": 1}
    ]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["-}", "+]"], b"{\n]"),
        ([" {", " }", "+more"], b"{\n}\nmore"),
        (["-{", " }"], b"}"),
        ([" {", "-}"], b"{\n"),
    ],
)
async def test_file_without_final_newline_keeps_its_style_at_the_end(
    tool_workspace: ToolWorkspace, lines: list[str], expected: bytes
):
    """BR-003: an edit of the last line adds no newline that was not there."""
    tool_workspace.put("e.txt", "{\n}")
    await tool_workspace.result("apply_patch", patch=update("e.txt", "@@", *lines))
    assert tool_workspace.get("e.txt") == expected


async def test_unified_diff_states_the_final_newline(tool_workspace: ToolWorkspace):
    """BR-003: what a diff says about the newline is done."""
    tool_workspace.put("n.txt", "a\nb")
    add = "--- a/n.txt\n+++ b/n.txt\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"
    await tool_workspace.result("apply_patch", patch=add)
    assert tool_workspace.get("n.txt") == b"a\nb\n"
    drop = "--- a/n.txt\n+++ b/n.txt\n@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n"
    await tool_workspace.result("apply_patch", patch=drop)
    assert tool_workspace.get("n.txt") == b"a\nb"


async def test_add_refuses_to_overwrite(tool_workspace: ToolWorkspace):
    """BR-005: add means create."""
    tool_workspace.put("notes.md", "years of notes\n")
    before = tool_workspace.picture()
    refusal = await tool_workspace.refusal(
        "apply_patch", patch=patch("*** Add File: other.md", "+x", "*** Add File: notes.md", "+fresh")
    )
    assert refusal["code"] == "already_exists"
    assert "notes.md" in refusal["message"]
    assert "Update File" in refusal["message"]
    assert tool_workspace.picture() == before


async def test_add_over_a_directory_is_refused(tool_workspace: ToolWorkspace):
    """BR-005: whatever kind of entry has the name."""
    tool_workspace.put("d/f", "f\n")
    refusal = await tool_workspace.refusal("apply_patch", patch=patch("*** Add File: d", "+x"))
    assert refusal["code"] == "already_exists"
    assert tool_workspace.get("d/f") == b"f\n"


async def test_delete_and_add_of_one_path_rewrites_it(tool_workspace: ToolWorkspace):
    """BR-005: the accepted idiom for a full rewrite; the mode stays."""
    tool_workspace.put("run.sh", "old\n", 0o755)
    await tool_workspace.result(
        "apply_patch", patch=patch("*** Delete File: run.sh", "*** Add File: run.sh", "+new")
    )
    assert tool_workspace.get("run.sh") == b"new\n"
    assert tool_workspace.mode("run.sh") == 0o755


@pytest.mark.parametrize("target", ["sub/../sub/./foo.txt", "sub/foo.txt", "alias/foo.txt"])
async def test_move_onto_itself_keeps_the_file(tool_workspace: ToolWorkspace, target: str):
    """BR-007: paths are compared after links and dots are resolved."""
    tool_workspace.put("sub/foo.txt", "before\n")
    tool_workspace.link("alias", "sub")
    refusal = await tool_workspace.refusal(
        "apply_patch",
        patch=patch("*** Update File: sub/foo.txt", f"*** Move to: {target}", "@@", "-before", "+after"),
    )
    assert refusal["code"] == "same_path"
    assert tool_workspace.get("sub/foo.txt") == b"before\n"


async def test_move_onto_an_existing_file_is_refused(tool_workspace: ToolWorkspace):
    """BR-007: a move never overwrites."""
    tool_workspace.put("a", "a\n")
    tool_workspace.put("b", "b\n")
    before = tool_workspace.picture()
    refusal = await tool_workspace.refusal(
        "apply_patch", patch=patch("*** Update File: a", "*** Move to: b", "@@", "-a", "+c")
    )
    assert refusal["code"] == "already_exists"
    assert tool_workspace.picture() == before


async def test_failing_section_undoes_all_others(tool_workspace: ToolWorkspace):
    """BR-008: all or nothing, new directories included; a retry then applies once."""
    tool_workspace.put("a.py", "x = 1\n")
    tool_workspace.put("b.py", "y = 1\n")
    before = tool_workspace.picture()
    head = ["*** Add File: new/pkg/mod.py", "+z = 1", "*** Update File: a.py", "@@", " x = 1", "+x2 = 2"]
    refusal = await tool_workspace.refusal(
        "apply_patch", patch=patch(*head, "*** Update File: c.py", "@@", "-q", "+r")
    )
    assert "c.py" in refusal["message"]
    assert tool_workspace.picture() == before
    await tool_workspace.result(
        "apply_patch", patch=patch(*head, "*** Update File: b.py", "@@", "-y = 1", "+y = 2")
    )
    assert tool_workspace.get("a.py") == b"x = 1\nx2 = 2\n"
    assert tool_workspace.get("b.py") == b"y = 2\n"
    assert tool_workspace.get("new/pkg/mod.py") == b"z = 1\n"


async def test_failure_while_writing_puts_everything_back(tool_workspace: ToolWorkspace):
    """BR-008: also when the system refuses the last file after others are staged."""
    tool_workspace.put("a", "a\n")
    tool_workspace.put("gone", "g\n")
    tool_workspace.put("blocked", "file\n")
    before = tool_workspace.picture()
    refusal = await tool_workspace.refusal(
        "apply_patch",
        patch=patch(
            "*** Update File: a", "@@", "-a", "+A",
            "*** Delete File: gone",
            "*** Add File: new/deep/x", "+x",
            f"*** Add File: new/{'n' * 300}", "+x",
        ),
    )  # fmt: skip
    assert refusal["code"] == "bad_path"
    assert tool_workspace.picture() == before


async def test_success_leaves_no_temporary_files(tool_workspace: ToolWorkspace):
    """BR-008: staged and backup files go."""
    tool_workspace.put("a", "a\n")
    tool_workspace.put("b", "b\n")
    await tool_workspace.result(
        "apply_patch",
        patch=patch("*** Update File: a", "@@", "-a", "+A", "*** Delete File: b", "*** Add File: c", "+c"),
    )
    assert set(tool_workspace.picture()) == {"a", "c"}


@pytest.mark.parametrize(
    "lines",
    [
        ["*** Add File: a/../../escape.txt", "+x"],
        ["*** Add File: {outside}/abs-escape.txt", "+x"],
        ["*** Update File: ok.txt", "*** Move to: ../moved-out.txt", "@@", "-ok", "+out"],
        ["*** Delete File: ../outside/victim.txt"],
        ["*** Update File: {outside}/victim.txt", "@@", "-v", "+owned"],
    ],
)
async def test_paths_outside_are_refused(tool_workspace: ToolWorkspace, lines: list[str]):
    """BR-010: by dots and by absolute path, as source, target and move target."""
    tool_workspace.put("../outside/victim.txt", "v\n")
    tool_workspace.put("ok.txt", "ok\n")
    before = tool_workspace.picture()
    refusal = await tool_workspace.refusal(
        "apply_patch", patch=patch(*lines).format(outside=tool_workspace.outside)
    )
    assert refusal["code"] == "outside_workspace"
    assert "outside the workspace" in refusal["message"]
    assert tool_workspace.picture() == before
    assert tool_workspace.get("../outside/victim.txt") == b"v\n"
    assert tool_workspace.names("..") == ["outside", "workspace"]


async def test_absolute_path_inside_the_workspace_is_fine(tool_workspace: ToolWorkspace):
    """BR-010: the one policy of all five tools."""
    tool_workspace.put("ok.txt", "ok\n")
    absolute = f"{tool_workspace.path}/ok.txt"
    await tool_workspace.result("apply_patch", patch=update(absolute, "@@", "-ok", "+new"))
    read = await tool_workspace.result("read_file", path=absolute)
    assert read["content"] == "1\tnew\n"
    await tool_workspace.result("write_file", path=absolute, content="w\n")
    listed = await tool_workspace.result("list_dir", path=str(tool_workspace.path))
    assert [entry["path"] for entry in listed["entries"]] == ["ok.txt"]
    ran = await tool_workspace.result("shell", command="cat ok.txt", workdir=str(tool_workspace.path))
    assert ran["stdout"] == "w\n"


@pytest.mark.parametrize(
    "lines",
    [
        ["*** Add File: link_dir/new.txt", "+x"],
        ["*** Update File: leaf.txt", "@@", "-v", "+owned"],
        ["*** Delete File: leaf.txt"],
        ["*** Delete File: link_dir/victim.txt"],
        ["*** Add File: dangling.txt", "+x"],
    ],
)
async def test_links_that_leave_the_workspace_are_refused(tool_workspace: ToolWorkspace, lines: list[str]):
    """BR-011: links on the way and at the end are resolved first."""
    tool_workspace.put("../outside/victim.txt", "v\n")
    tool_workspace.link("link_dir", str(tool_workspace.outside))
    tool_workspace.link("leaf.txt", str(tool_workspace.outside / "victim.txt"))
    tool_workspace.link("dangling.txt", str(tool_workspace.outside / "new.txt"))
    before = tool_workspace.picture()
    refusal = await tool_workspace.refusal("apply_patch", patch=patch(*lines))
    assert refusal["code"] == "outside_workspace"
    assert tool_workspace.picture() == before
    assert tool_workspace.names("../outside") == ["victim.txt"]
    assert tool_workspace.get("../outside/victim.txt") == b"v\n"


async def test_link_inside_the_workspace_is_followed_and_kept(tool_workspace: ToolWorkspace):
    """BR-011: the target changes, the link stays a link."""
    tool_workspace.put("real/t.txt", "v\n")
    tool_workspace.link("leaf.txt", "real/t.txt")
    await tool_workspace.result("apply_patch", patch=update("leaf.txt", "@@", "-v", "+w"))
    assert tool_workspace.get("real/t.txt") == b"w\n"
    assert tool_workspace.is_link("leaf.txt")


async def test_deleting_a_link_leaves_its_target(tool_workspace: ToolWorkspace):
    """BR-011: delete is about the name."""
    tool_workspace.put("real.txt", "v\n")
    tool_workspace.link("leaf.txt", "real.txt")
    await tool_workspace.result("apply_patch", patch=patch("*** Delete File: leaf.txt"))
    assert set(tool_workspace.picture()) == {"real.txt"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("apply_patch <<'PATCH-1'\n", "\nPATCH-1\n"),
        ("apply_patch <<PATCH\n", "\nPATCH"),
        ('applypatch <<"EOF"\n', "\nEOF\n"),
        ("\n\n", "\n\n\n"),
        ("```\n", "\n```\n"),
        ("```diff\n", "\n```"),
        ("```bash\napply_patch <<'EOF'\n", "\nEOF\n```\n"),
        ("cat <<'EOF' | apply_patch\n", "\nEOF\n"),
    ],
)
async def test_wrappers_around_a_patch_are_taken_off(tool_workspace: ToolWorkspace, before: str, after: str):
    """BR-018: and body lines are never taken for markers."""
    body = patch("*** Add File: x.txt", "+EOF", "+*** End Patch inside text is fine", "+ok").strip()
    await tool_workspace.result("apply_patch", patch=before + body + after)
    assert tool_workspace.get("x.txt") == b"EOF\n*** End Patch inside text is fine\nok\n"


async def test_unified_diff_in_a_fence_is_read(tool_workspace: ToolWorkspace):
    """BR-018: the same wrappers for the other format."""
    tool_workspace.put("a", "a\n")
    await tool_workspace.result("apply_patch", patch="```diff\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+b\n```\n")
    assert tool_workspace.get("a") == b"b\n"


async def test_patch_without_its_end_is_refused(tool_workspace: ToolWorkspace):
    """BR-018: a patch that was cut off is not half applied."""
    tool_workspace.put("a", "a\n")
    refusal = await tool_workspace.refusal(
        "apply_patch", patch="*** Begin Patch\n*** Update File: a\n@@\n-a\n+b\n"
    )
    assert refusal["code"] == "bad_patch"
    assert "End Patch" in refusal["message"]
    assert tool_workspace.get("a") == b"a\n"


@pytest.mark.parametrize(
    "text", ["hello", "*** Begin Patch\n*** End Patch", "*** Begin Patch\nfoo\n*** End Patch"]
)
async def test_text_that_is_no_patch_is_refused(tool_workspace: ToolWorkspace, text: str):
    """BR-018: with words on what a patch looks like."""
    refusal = await tool_workspace.refusal("apply_patch", patch=text)
    assert refusal["code"] == "bad_patch"


async def test_blank_context_line_without_its_space(tool_workspace: ToolWorkspace):
    """BR-020: a bare empty line is blank context, and a separator at the end."""
    tool_workspace.put("t.txt", "foo\n\nbar\nbaz\n")
    await tool_workspace.result(
        "apply_patch", patch=update("t.txt", "@@", " foo", "", "-bar", "+qux", " baz", "")
    )
    assert tool_workspace.get("t.txt") == b"foo\n\nqux\nbaz\n"


async def test_blank_lines_between_sections_and_in_new_files(tool_workspace: ToolWorkspace):
    """BR-020: blank inside a new file's text is text, behind it a separator."""
    await tool_workspace.result(
        "apply_patch", patch=patch("*** Add File: a", "+1", "", "+2", "", "*** Add File: b", "+3", "")
    )
    assert tool_workspace.get("a") == b"1\n\n2\n"
    assert tool_workspace.get("b") == b"3\n"


async def test_hunks_in_any_order(tool_workspace: ToolWorkspace):
    """BR-021: every hunk is located in the original."""
    tool_workspace.put("n.txt", "".join(f"l{n}\n" for n in range(1, 9)))
    await tool_workspace.result(
        "apply_patch", patch=update("n.txt", "@@", "-l6", "+L6", "@@", "-l2", "+L2", "+L2b")
    )
    assert tool_workspace.get("n.txt") == b"l1\nL2\nL2b\nl3\nl4\nl5\nL6\nl7\nl8\n"


async def test_overlapping_hunks_are_refused(tool_workspace: ToolWorkspace):
    """BR-021: never duplicated lines."""
    tool_workspace.put("n.txt", "a\nb\nc\n")
    refusal = await tool_workspace.refusal(
        "apply_patch", patch=update("n.txt", "@@", " a", "-b", "+B", "@@", "-b", "+X", " c")
    )
    assert refusal["code"] == "overlapping_hunks"
    assert tool_workspace.get("n.txt") == b"a\nb\nc\n"


async def test_two_sections_of_one_file_build_on_each_other(tool_workspace: ToolWorkspace):
    """BR-021: a later part sees what an earlier one made."""
    tool_workspace.put("n.txt", "a\nb\n")
    await tool_workspace.result(
        "apply_patch",
        patch=patch(
            "*** Update File: n.txt", "@@", "-a", "+A", "*** Update File: n.txt", "@@", " A", "-b", "+B"
        ),
    )
    assert tool_workspace.get("n.txt") == b"A\nB\n"


async def test_modes_survive_update_and_move(tool_workspace: ToolWorkspace):
    """BR-023: a patch edits text, not permissions."""
    tool_workspace.put("run.sh", "#!/bin/sh\necho 1\n", 0o755)
    tool_workspace.put("key.pem", "k\n", 0o600)
    await tool_workspace.result("apply_patch", patch=update("run.sh", "@@", "-echo 1", "+echo 2"))
    assert tool_workspace.mode("run.sh") == 0o755
    await tool_workspace.result(
        "apply_patch",
        patch=patch("*** Update File: run.sh", "*** Move to: bin/go.sh", "@@", "-echo 2", "+echo 3"),
    )
    assert tool_workspace.mode("bin/go.sh") == 0o755
    assert not tool_workspace.exists("run.sh")
    await tool_workspace.result("apply_patch", patch=update("key.pem", "@@", "-k", "+K"))
    assert tool_workspace.mode("key.pem") == 0o600


async def test_new_files_follow_the_umask_and_get_no_special_bits(tool_workspace: ToolWorkspace):
    """BR-023: 0644 under the usual umask; setuid does not travel with a move."""
    tool_workspace.put("suid", "x\n", 0o4755)
    await tool_workspace.result(
        "apply_patch",
        patch=patch("*** Add File: new", "+x", "*** Update File: suid", "*** Move to: moved"),
    )
    assert tool_workspace.mode("new") == 0o666 & ~tool_workspace.umask()
    assert tool_workspace.mode("moved") == 0o755


async def test_git_diff_sets_the_executable_bit(tool_workspace: ToolWorkspace):
    """BR-023: where the patch itself speaks of modes."""
    tool_workspace.put("a", "a\n", 0o644)
    await tool_workspace.result(
        "apply_patch",
        patch="diff --git a/a b/a\nold mode 100644\nnew mode 100755\n"
        "diff --git a/n b/n\nnew file mode 100755\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+n\n",
    )
    assert tool_workspace.mode("a") == 0o755
    assert tool_workspace.mode("n") == 0o755
    assert tool_workspace.get("n") == b"n\n"


async def test_deleting_what_is_missing_or_a_directory_is_refused(tool_workspace: ToolWorkspace):
    """BR-024: success means that the state asked for holds."""
    tool_workspace.put("d/f", "f\n")
    missing = await tool_workspace.refusal("apply_patch", patch=patch("*** Delete File: nope.txt"))
    assert missing["code"] == "not_found"
    directory = await tool_workspace.refusal("apply_patch", patch=patch("*** Delete File: d"))
    assert directory["code"] == "is_a_directory"
    assert tool_workspace.get("d/f") == b"f\n"


async def test_empty_file_can_be_updated(tool_workspace: ToolWorkspace):
    """BR-024: nothing to match is no reason to fail."""
    tool_workspace.put("e.txt", "")
    await tool_workspace.result("apply_patch", patch=update("e.txt", "@@", "+first"))
    assert tool_workspace.get("e.txt") == b"first\n"


async def test_deleted_file_is_gone(tool_workspace: ToolWorkspace):
    """BR-024: not left behind empty."""
    tool_workspace.put("x", "1\n")
    output = await tool_workspace.result("apply_patch", patch=patch("*** Delete File: x"))
    assert not tool_workspace.exists("x")
    assert output["files"][0]["action"] == "deleted"


async def test_addition_without_a_place_is_refused(tool_workspace: ToolWorkspace):
    """BR-024: no text lands at the start or the end by default."""
    tool_workspace.put("a", "a\n")
    refusal = await tool_workspace.refusal("apply_patch", patch=update("a", "@@", "+b"))
    assert refusal["code"] == "no_context"
    await tool_workspace.result("apply_patch", patch=update("a", "@@ a", "+b"))
    assert tool_workspace.get("a") == b"a\nb\n"


async def test_patch_that_changes_nothing_says_so(tool_workspace: ToolWorkspace):
    """BR-024: success would not be evidence."""
    tool_workspace.put("a", "a\n")
    refusal = await tool_workspace.refusal("apply_patch", patch=update("a", "@@", "-a", "+a"))
    assert refusal["code"] == "no_change"


async def test_git_rename_and_copy(tool_workspace: ToolWorkspace):
    """A git diff may move and copy, with and without edits, binary files too."""
    tool_workspace.put("old.bin", b"\0\1\2", 0o755)
    tool_workspace.put("src.txt", "a\nb\n")
    await tool_workspace.result(
        "apply_patch",
        patch="diff --git a/old.bin b/sub/new.bin\nsimilarity index 100%\n"
        "rename from old.bin\nrename to sub/new.bin\n"
        "diff --git a/src.txt b/copy.txt\nsimilarity index 50%\ncopy from src.txt\ncopy to copy.txt\n"
        "--- a/src.txt\n+++ b/copy.txt\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n",
    )
    assert tool_workspace.get("sub/new.bin") == b"\0\1\2"
    assert tool_workspace.mode("sub/new.bin") == 0o755
    assert tool_workspace.get("src.txt") == b"a\nb\n"
    assert tool_workspace.get("copy.txt") == b"a\nc\n"
    assert not tool_workspace.exists("old.bin")


async def test_unified_diff_with_wrong_counts_is_read(tool_workspace: ToolWorkspace):
    """Models count badly; context and uniqueness are what guards the place."""
    tool_workspace.put("a", "a\nb\nc\nd\n")
    await tool_workspace.result(
        "apply_patch", patch="--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n c\n d\n+e\n"
    )
    assert tool_workspace.get("a") == b"a\nB\nc\nd\ne\n"


async def test_removed_line_that_looks_like_a_header(tool_workspace: ToolWorkspace):
    """`-- x` removed is `--- x` in a diff."""
    tool_workspace.put("q.sql", "-- a\nb\n")
    await tool_workspace.result(
        "apply_patch", patch="--- a/q.sql\n+++ b/q.sql\n@@ -1,2 +1,2 @@\n--- a\n+++ c\n b\n"
    )
    assert tool_workspace.get("q.sql") == b"++ c\nb\n"


async def test_binary_git_patch_and_links_are_refused(tool_workspace: ToolWorkspace):
    """What can't be applied is said, not skipped."""
    for tail in (
        "GIT binary patch\nliteral 0\n",
        "new file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+t\n",
    ):
        refusal = await tool_workspace.refusal("apply_patch", patch=f"diff --git a/x b/x\n{tail}")
        assert refusal["code"] == "bad_patch"
    assert tool_workspace.picture() == {}


async def test_file_changed_meanwhile_fails_the_patch(directory_workspace: DirectoryWorkspace):
    """A write between reading and writing is not lost."""
    directory_workspace.put("a", "a\n")
    directory_workspace.put("b", "b\n")
    plan = PatchPlan(Workspace(directory_workspace.path))
    lines = patch(
        "*** Update File: a",
        "@@",
        "-a",
        "+A",
        "*** Update File: b",
        "@@",
        "-b",
        "+B",
        "*** Add File: c",
        "+c",
    )
    for edit in parse_patch(lines.split("\n")):
        plan.take(edit)
    directory_workspace.put("c", "somebody else's\n")
    before = directory_workspace.picture()
    with pytest.raises(Refused, match="exists already"):
        commit(list(plan.files.values()))
    assert directory_workspace.picture() == before
    directory_workspace.remove("c")
    directory_workspace.put("b", "longer\n")
    before = directory_workspace.picture()
    with pytest.raises(Refused, match="somebody else"):
        commit(list(plan.files.values()))
    assert directory_workspace.picture() == before

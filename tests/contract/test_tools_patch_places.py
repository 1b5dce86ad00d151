"""Where a hunk belongs, and which bytes it leaves alone: the reported faults (PD-9)."""

from __future__ import annotations

import pytest

from tests.support.patches import update
from tests.support.tool_workspace import ToolWorkspace

TWINS = (
    "def early(p):\n\tif p:\n\t\tflush()\n\t\treturn None\n\n"
    "def target(p):\n\tfor i in p:\n\t\tif i:\n\t\t\tflush()\n\t\t\treturn None\n"
)
TWIN_HUNK = ["-    flush()", "-    return None", "+    flush()", "+    return 0"]


async def test_look_alike_blocks_are_ambiguous(tool_workspace: ToolWorkspace):
    """BR-012: a tolerant match that is not unique is an error that lists the places."""
    tool_workspace.put("h.py", TWINS)
    refusal = await tool_workspace.refusal("apply_patch", patch=update("h.py", "@@", *TWIN_HUNK))
    assert refusal["code"] == "ambiguous_hunk"
    assert refusal["lines"] == [3, 9]
    assert "@@" in refusal["message"]
    assert tool_workspace.get("h.py") == TWINS.encode()


async def test_anchor_picks_the_block_and_the_file_gives_the_indentation(tool_workspace: ToolWorkspace):
    """BR-012: with the @@ line the same hunk changes only the second block."""
    tool_workspace.put("h.py", TWINS)
    output = await tool_workspace.result("apply_patch", patch=update("h.py", "@@ def target(p):", *TWIN_HUNK))
    head, _, tail = TWINS.rpartition("None")
    assert tool_workspace.get("h.py") == f"{head}0{tail}".encode()
    assert output["files"][0] == {
        "path": "h.py",
        "action": "updated",
        "lines_added": 1,
        "lines_removed": 1,
        "matched": "indentation ignored",
    }


async def test_exact_look_alikes_are_ambiguous_too(tool_workspace: ToolWorkspace):
    """BR-012: never the first by luck."""
    tool_workspace.put("t.txt", "a\nx\nb\nx\n")
    refusal = await tool_workspace.refusal("apply_patch", patch=update("t.txt", "@@", "-x", "+y"))
    assert refusal["lines"] == [2, 4]


async def test_nested_anchors_narrow_the_place(tool_workspace: ToolWorkspace):
    """BR-012: class, then method; look-alikes elsewhere don't matter."""
    text = "class A:\n    def f(self):\n        return 1\n\nclass B:\n    def f(self):\n        return 1\n"
    tool_workspace.put("c.py", text)
    await tool_workspace.result(
        "apply_patch",
        patch=update("c.py", "@@ class B:", "@@     def f(self):", "-        return 1", "+        return 2"),
    )
    assert tool_workspace.get("c.py") == (text[:-2] + "2\n").encode()


async def test_unknown_anchor_is_refused(tool_workspace: ToolWorkspace):
    """BR-012: a wrong header is no licence to look elsewhere."""
    tool_workspace.put("c.py", "def g():\n    return 1\n")
    refusal = await tool_workspace.refusal(
        "apply_patch", patch=update("c.py", "@@ def f():", "-    return 1", "+    return 2")
    )
    assert refusal["code"] == "anchor_not_found"
    assert refusal["candidates"][0]["file_has"] == "def g():"


async def test_unified_line_number_tells_look_alikes_apart(tool_workspace: ToolWorkspace):
    """BR-012: the place that a diff states is a place."""
    tool_workspace.put("t.txt", "x\nb\nx\nb\nx\nb\n")
    diff = "--- a/t.txt\n+++ b/t.txt\n@@ -3,2 +3,2 @@\n-x\n+y\n b\n"
    await tool_workspace.result("apply_patch", patch=diff)
    assert tool_workspace.get("t.txt") == b"x\nb\ny\nb\nx\nb\n"
    wrong = diff.replace("-3,2", "-70,2")
    refusal = await tool_workspace.refusal("apply_patch", patch=wrong)
    assert refusal["code"] == "ambiguous_hunk"


async def test_hunk_that_fits_nowhere_shows_the_nearest_place(tool_workspace: ToolWorkspace):
    """BR-012: the refusal helps to write the next patch."""
    tool_workspace.put("t.txt", "one\ntwo\nthree\nfour\n")
    refusal = await tool_workspace.refusal(
        "apply_patch", patch=update("t.txt", "@@", " one", " zwei", "-three", "+3")
    )
    assert refusal["code"] == "hunk_not_found"
    assert refusal["candidates"][0] == {
        "line": 1,
        "matching_lines": 2,
        "differs_at": 2,
        "file_has": "two",
    }


TYPOGRAPHIC = "The \u201cbest\u201d top\u2013level\u00a0option \u2014 keep\nvalue = 1\n"


async def test_typographic_characters_match_plain_ones_and_stay(tool_workspace: ToolWorkspace):
    """BR-013: normalised for comparison only."""
    tool_workspace.put("doc.md", TYPOGRAPHIC)
    output = await tool_workspace.result(
        "apply_patch",
        patch=update("doc.md", "@@", ' The "best" top-level option - keep', "-value = 1", "+value = 2"),
    )
    assert tool_workspace.get("doc.md") == TYPOGRAPHIC.replace("= 1", "= 2").encode()
    assert "typographic" in output["files"][0]["matched"]


async def test_line_removed_and_added_unchanged_keeps_its_bytes(tool_workspace: ToolWorkspace):
    """BR-013: an equal pair of old and new line is context."""
    tool_workspace.put("doc.md", TYPOGRAPHIC)
    plain = 'The "best" top-level option - keep'
    await tool_workspace.result(
        "apply_patch",
        patch=update("doc.md", "@@", f"-{plain}", "-value = 1", f"+{plain}", "+value = 2"),
    )
    assert tool_workspace.get("doc.md") == TYPOGRAPHIC.replace("= 1", "= 2").encode()


async def test_trailing_space_in_context_is_tolerated_and_kept(tool_workspace: ToolWorkspace):
    """BR-013: the same for blanks at line ends."""
    tool_workspace.put("t.txt", "a  \nb\n")
    await tool_workspace.result("apply_patch", patch=update("t.txt", "@@", " a", "-b", "+c"))
    assert tool_workspace.get("t.txt") == b"a  \nc\n"


async def test_byte_order_mark_is_hidden_and_kept(tool_workspace: ToolWorkspace):
    """BR-015: exactly one mark before and after."""
    tool_workspace.put("b.js", b"\xef\xbb\xbfconst v = 1;\n")
    await tool_workspace.result("apply_patch", patch=update("b.js", "@@", "-const v = 1;", "+const v = 2;"))
    assert tool_workspace.get("b.js") == b"\xef\xbb\xbfconst v = 2;\n"


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-32-le"])
async def test_wide_encodings_are_patched_in_place(tool_workspace: ToolWorkspace, codec: str):
    """BR-015: a mark also names UTF-16 and UTF-32."""
    tool_workspace.put("u.txt", "\ufeffone\r\ncaf\u00e9\r\n".encode(codec))
    await tool_workspace.result("apply_patch", patch=update("u.txt", "@@", "-one", "+two", " caf\u00e9"))
    assert tool_workspace.get("u.txt") == "\ufefftwo\r\ncaf\u00e9\r\n".encode(codec)


async def test_bytes_that_are_no_utf8_survive(tool_workspace: ToolWorkspace):
    """BR-016: the byte stays what it was."""
    tool_workspace.put("l1.c", b"/* caf\xe9 */\nint a = 1;\n")
    await tool_workspace.result("apply_patch", patch=update("l1.c", "@@", "-int a = 1;", "+int a = 2;"))
    assert tool_workspace.get("l1.c") == b"/* caf\xe9 */\nint a = 2;\n"


@pytest.mark.parametrize("spelling", ["caf\u00e9", "caf\\xe9"])
async def test_lines_with_such_bytes_can_be_named_and_edited(tool_workspace: ToolWorkspace, spelling: str):
    """BR-016: as the character, or as read_file shows it; the new line is Latin-1 too."""
    tool_workspace.put("l1.c", b"/* caf\xe9 */\nint a = 1;\n")
    await tool_workspace.result(
        "apply_patch", patch=update("l1.c", "@@", f"-/* {spelling} */", f"+/* le {spelling} */")
    )
    assert tool_workspace.get("l1.c") == b"/* le caf\xe9 */\nint a = 1;\n"


async def test_character_that_latin_1_lacks_is_refused(tool_workspace: ToolWorkspace):
    """BR-016: rather than a file in two encodings."""
    tool_workspace.put("l1.c", b"caf\xe9\nx\n")
    refusal = await tool_workspace.refusal("apply_patch", patch=update("l1.c", "@@", "-x", "+\u20ac"))
    assert refusal["code"] == "bad_encoding"
    assert tool_workspace.get("l1.c") == b"caf\xe9\nx\n"


async def test_end_of_file_marker_picks_the_last_block(tool_workspace: ToolWorkspace):
    """BR-017: only the block at the end."""
    hunk = ["@@", " x", "-end", "+END", "*** End of File"]
    tool_workspace.put("e.txt", "x\nend\nmid\nx\nend\n")
    await tool_workspace.result("apply_patch", patch=update("e.txt", *hunk))
    assert tool_workspace.get("e.txt") == b"x\nend\nmid\nx\nEND\n"
    tool_workspace.put("e.txt", "x\nend\nmid\nx\nend\ntail\n")
    refusal = await tool_workspace.refusal("apply_patch", patch=update("e.txt", *hunk))
    assert refusal["code"] == "hunk_not_found"


async def test_end_of_file_marker_appends(tool_workspace: ToolWorkspace):
    """BR-017: with it a hunk needs no context."""
    tool_workspace.put("e.txt", "x\n")
    await tool_workspace.result("apply_patch", patch=update("e.txt", "@@", "+y", "*** End of File"))
    assert tool_workspace.get("e.txt") == b"x\ny\n"

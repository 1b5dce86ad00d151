"""The reported faults of read_file, write_file and list_dir, and their kinds (PD-9)."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.tool_workspace import DirectoryWorkspace, ToolWorkspace
from worker.tools.atomic_write import write_atomically
from worker.tools.refusal import Refused
from worker.tools.workspace_paths import Workspace


def numbered(*lines: str) -> str:
    return "".join(f"{number}\t{line}\n" for number, line in enumerate(lines, 1))


def entries(listing: dict[str, Any]) -> dict[str, str]:
    return {entry["path"]: entry["type"] for entry in listing["entries"]}


async def test_fifo_socket_and_device_are_answered_at_once(tool_workspace: ToolWorkspace):
    """BR-040: no read or write blocks, and no thread is left behind."""
    tool_workspace.make_fifo("notes.md")
    tool_workspace.link("z.bin", "/dev/zero")
    tool_workspace.make_socket("s")
    for name, kind in (("notes.md", "fifo"), ("s", "socket")):
        read = await tool_workspace.refusal("read_file", path=name)
        assert (read["code"], read["type"]) == ("not_a_file", kind)
        write = await tool_workspace.refusal("write_file", path=name, content="x")
        assert write["code"] == "not_a_file"
    for path in ("z.bin", "/proc/self/fd/0", "/dev/zero"):
        assert (await tool_workspace.refusal("read_file", path=path))["code"] == "outside_workspace"
    patched = await tool_workspace.refusal(
        "apply_patch", patch="*** Begin Patch\n*** Update File: notes.md\n@@\n-a\n+b\n*** End Patch"
    )
    assert patched["code"] == "not_a_file"
    assert entries(await tool_workspace.result("list_dir")) == {
        "notes.md": "fifo",
        "s": "socket",
        "z.bin": "link",
    }


async def test_directory_is_no_file_and_file_no_directory(tool_workspace: ToolWorkspace):
    """BR-040: the refusal says which tool fits."""
    tool_workspace.put("d/f", "f\n")
    assert "list_dir" in (await tool_workspace.refusal("read_file", path="d"))["message"]
    assert (await tool_workspace.refusal("write_file", path="d", content=""))["code"] == "is_a_directory"
    assert (await tool_workspace.refusal("write_file", path="new/", content=""))["code"] == "is_a_directory"
    assert (await tool_workspace.refusal("list_dir", path="d/f"))["code"] == "not_a_directory"
    assert (await tool_workspace.refusal("read_file", path="d/f/g"))["code"] == "not_a_directory"
    assert (await tool_workspace.refusal("write_file", path="d/f/g", content=""))["code"] == "not_a_directory"
    for tool in ("read_file", "list_dir"):
        assert (await tool_workspace.refusal(tool, path="nope"))["code"] == "not_found"


async def read_through(workspace: ToolWorkspace, path: str) -> str:
    """Follow every continuation that the tool suggests; the text of the file, lines ended by newlines."""
    text: list[str] = []
    offset: int | None = 1
    while offset is not None:
        window = await workspace.result("read_file", path=path, offset=offset)
        cut = {line["line"]: line["next_column_offset"] for line in window.get("cut_lines", [])}
        content: str = window["content"]
        for row in content.removesuffix("\n").split("\n") if content else []:
            number, _, body = row.partition("\t")
            text.append(body)
            column: int | None = cut.get(int(number))
            while column is not None:
                part = await workspace.result(
                    "read_file", path=path, offset=int(number), column_offset=column
                )
                text.append(part["content"].removesuffix("\n").partition("\t")[2])
                follow = part.get("cut_lines")
                advanced = follow[0]["next_column_offset"] if follow else None
                assert advanced is None or advanced > column
                column = advanced
            text.append("\n")
        following = window.get("next_offset")
        assert following is None or following > offset
        offset = following
    return "".join(text)


@pytest.mark.parametrize("character", ["x", "\u00e9", "\U0001f600"])
async def test_enormous_line_is_read_in_bounded_steps(tool_workspace: ToolWorkspace, character: str):
    """BR-041: the first answer shows something, each continuation advances, the end is reachable."""
    line = character * 300_000 + '"END"}'
    tool_workspace.put("data.json", line)
    first = await tool_workspace.result("read_file", path="data.json")
    assert first["content"] == f"1\t{character * 2000}\n"
    assert first["cut_lines"] == [{"line": 1, "characters": 300_006, "next_column_offset": 2001}]
    assert first["size_bytes"] == len(line.encode())
    assert await read_through(tool_workspace, "data.json") == line + "\n"


async def test_two_million_characters_take_few_calls(tool_workspace: ToolWorkspace):
    """BR-041: a continued line comes in pieces of the whole budget."""
    tool_workspace.put("data.json", "x" * 2_000_000)
    part = await tool_workspace.result("read_file", path="data.json", column_offset=2001)
    assert len(part["content"]) > 48_000
    assert len(part["content"]) <= 48 * 1024
    last = await tool_workspace.result("read_file", path="data.json", column_offset=1_999_999)
    assert last["content"] == "1\txx\n"
    assert "cut_lines" not in last
    past = await tool_workspace.result("read_file", path="data.json", column_offset=3_000_000)
    assert past["content"] == "1\t\n"


async def test_window_is_bounded_in_bytes(tool_workspace: ToolWorkspace):
    """BR-041: many long lines stop at the budget, with the offset to go on at."""
    tool_workspace.put("long.txt", "".join("y" * 1500 + "\n" for _ in range(100)))
    first = await tool_workspace.result("read_file", path="long.txt")
    assert len(first["content"].encode()) <= 48 * 1024
    assert first["next_offset"] == first["content"].count("\n") + 1
    assert first["total_lines"] == 100
    assert await read_through(tool_workspace, "long.txt") == tool_workspace.get("long.txt").decode()


@pytest.mark.parametrize(
    ("data", "lines"),
    [(b"a\nb\nc\n", 3), (b"a\nb\nc", 3), (b"a\n\n", 2), (b"\n", 1), (b"", 0), (b"a\r\nb", 2)],
)
async def test_total_lines_and_offsets_past_the_end(tool_workspace: ToolWorkspace, data: bytes, lines: int):
    """An offset past the end is an answer, not an error."""
    tool_workspace.put("f", data)
    whole = await tool_workspace.result("read_file", path="f")
    assert whole["total_lines"] == lines
    assert "next_offset" not in whole
    assert whole["content"] == numbered(*data.decode().replace("\r", "").split("\n")[:lines])
    past = await tool_workspace.result("read_file", path="f", offset=50)
    assert (past["content"], past["total_lines"]) == ("", lines)
    assert "past the end" in past["note"] or lines == 0


async def test_window_of_lines(tool_workspace: ToolWorkspace):
    """Offset and limit, and where to go on."""
    tool_workspace.put("f", "".join(f"l{n}\n" for n in range(1, 11)))
    window = await tool_workspace.result("read_file", path="f", offset=3, limit=2)
    assert window["content"] == "3\tl3\n4\tl4\n"
    assert (window["next_offset"], window["total_lines"]) == (5, 10)
    last = await tool_workspace.result("read_file", path="f", offset=9, limit=2)
    assert "next_offset" not in last


async def test_default_window_is_two_thousand_lines(tool_workspace: ToolWorkspace):
    """And the rest is announced."""
    tool_workspace.put("f", "x\n" * 5000)
    window = await tool_workspace.result("read_file", path="f")
    assert window["content"].count("\n") == 2000
    assert (window["next_offset"], window["total_lines"]) == (2001, 5000)


async def test_large_file_is_streamed(tool_workspace: ToolWorkspace):
    """Any size, any offset."""
    tool_workspace.put("big", "".join(f"{n}\n" for n in range(1_000_000)))
    window = await tool_workspace.result("read_file", path="big", offset=900_001, limit=1)
    assert window["content"] == "900001\t900000\n"
    assert window["total_lines"] == 1_000_000


async def test_binary_file_is_named_not_shown(tool_workspace: ToolWorkspace):
    """BR-043: kind and size instead of its bytes."""
    tool_workspace.put("img.png", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 800)
    refusal = await tool_workspace.refusal("read_file", path="img.png")
    assert refusal["code"] == "binary_file"
    assert refusal["type"] == "PNG image"
    assert refusal["size_bytes"] == 204_808
    tool_workspace.put("nul.txt", b"a\0b\n")
    assert (await tool_workspace.refusal("read_file", path="nul.txt"))["code"] == "binary_file"


@pytest.mark.parametrize(
    ("data", "lines", "encoding"),
    [
        ("\ufeffhi\ncaf\u00e9\n".encode("utf-16-le"), ["hi", "caf\u00e9"], "utf-16-le"),
        ("\ufeffhi\r\n\U0001f600\r\n".encode("utf-16-be"), ["hi", "\U0001f600"], "utf-16-be"),
        ("\ufeffhi\n".encode("utf-32-le"), ["hi"], "utf-32-le"),
        ("\ufeffhi\n".encode(), ["hi"], "utf-8 with byte-order mark"),
        (b"caf\xe9\n", ["caf\\xe9"], "perhaps latin-1"),
        (b"a\rb\r", ["a", "b"], "utf-8"),
        ("x\u2028y\x0cz\x85\n".encode(), ["x\u2028y\x0cz\x85"], "utf-8"),
    ],
)
async def test_other_encodings_are_read_and_named(
    tool_workspace: ToolWorkspace, data: bytes, lines: list[str], encoding: str
):
    """BR-043: decoded where a mark says how, else escaped with a guess."""
    tool_workspace.put("t.txt", data)
    result = await tool_workspace.result("read_file", path="t.txt")
    assert result["content"] == numbered(*lines)
    assert encoding in result["encoding"]


async def test_invalid_bytes_deep_in_a_file_are_escaped(tool_workspace: ToolWorkspace):
    """BR-043: also after pieces that were fine, and for a character cut at the end."""
    tool_workspace.put("t.txt", b"a\n" * 800_000 + "\u20ac".encode()[:2])
    result = await tool_workspace.result("read_file", path="t.txt", offset=800_000)
    assert result["content"] == "800000\ta\n800001\t\\xe2\\x82\n"


async def test_line_endings_are_told(tool_workspace: ToolWorkspace):
    """BR-043: they are hidden in the text, so they are named beside it."""
    tool_workspace.put("w.txt", "a\r\nb\r\n")
    assert (await tool_workspace.result("read_file", path="w.txt"))["line_endings"] == "crlf"


async def test_write_creates_parents_and_replaces(tool_workspace: ToolWorkspace):
    """The answer says which it was; content arrives byte for byte."""
    content = "caf\u00e9\r\n\tx\n\n no newline"
    made = await tool_workspace.result("write_file", path="a/b/c.txt", content=content)
    assert made == {"path": "a/b/c.txt", "bytes": len(content.encode()), "action": "created"}
    assert tool_workspace.get("a/b/c.txt") == content.encode()
    again = await tool_workspace.result("write_file", path="a/b/c.txt", content="")
    assert again["action"] == "replaced"
    assert tool_workspace.get("a/b/c.txt") == b""


async def test_create_mode_does_not_overwrite(tool_workspace: ToolWorkspace):
    """BR-005's kind: an explicit create never loses content."""
    tool_workspace.put("a", "old\n")
    refusal = await tool_workspace.refusal("write_file", path="a", content="new\n", mode="create")
    assert refusal["code"] == "already_exists"
    assert tool_workspace.get("a") == b"old\n"


async def test_any_file_of_the_workspace_may_be_written(tool_workspace: ToolWorkspace):
    """No name is sacred, and a long text is no special case."""
    for name in ("README.md", "AGENTS.md", "daily/x", ".hidden", "-rf", "na\u00efve name"):
        await tool_workspace.result("write_file", path=name, content="x" * 200_000)
    assert len(tool_workspace.picture()) == 7


async def test_content_over_the_limit_or_not_unicode_is_refused(tool_workspace: ToolWorkspace):
    """Bounds are told with their numbers."""
    large = await tool_workspace.refusal("write_file", path="a", content="\u20ac" * (6 * 1024 * 1024))
    assert large["code"] == "too_large"
    broken = await tool_workspace.refusal("write_file", path="a", content="x\ud800")
    assert broken["code"] == "bad_content"
    assert tool_workspace.picture() == {}


async def test_mode_and_owner_stay(directory_workspace: DirectoryWorkspace):
    """BR-044: replacing a file does not reset what belongs to it."""
    directory_workspace.put("cfg.toml", "old\n", 0o600)
    directory_workspace.put("run.sh", "old\n", 0o755)
    path = directory_workspace.path / "run.sh"
    if os.getuid() == 0:
        os.chown(path, 1234, 1235)
    await directory_workspace.result("write_file", path="cfg.toml", content="new\n")
    await directory_workspace.result("write_file", path="run.sh", content="new\n")
    assert directory_workspace.mode("cfg.toml") == 0o600
    assert directory_workspace.mode("run.sh") == 0o755
    if os.getuid() == 0:
        assert (path.stat().st_uid, path.stat().st_gid) == (1234, 1235)


async def test_link_in_the_workspace_is_written_through(tool_workspace: ToolWorkspace):
    """BR-044: the link stays, its target changes; a missing target is made."""
    tool_workspace.put("real/t.txt", "old\n")
    tool_workspace.link("link.txt", "real/t.txt")
    tool_workspace.link("dangling.txt", "real/new.txt")
    await tool_workspace.result("write_file", path="link.txt", content="new\n")
    await tool_workspace.result("write_file", path="dangling.txt", content="made\n")
    assert tool_workspace.is_link("link.txt")
    assert tool_workspace.is_link("dangling.txt")
    assert tool_workspace.get("real/t.txt") == b"new\n"
    assert tool_workspace.get("real/new.txt") == b"made\n"


KILLED_WRITER = """
import os, sys
from pathlib import Path
from worker.tools import atomic_write
from worker.tools.workspace_paths import Workspace, existing_file

sync = os.fsync
def stop(descriptor):
    sync(descriptor)
    os.kill(os.getpid(), 9)
os.fsync = stop
path = Workspace(Path(sys.argv[1])).resolve("cfg.toml")
atomic_write.write_atomically(path, b"n" * 5_000_000, keep=existing_file(path), create=False)
"""


async def test_killed_writer_leaves_the_old_content(directory_workspace: DirectoryWorkspace):
    """BR-044: whole old or whole new, with its mode; never a half."""
    directory_workspace.put("cfg.toml", "o" * 1024, 0o600)
    run = [sys.executable, "-c", KILLED_WRITER, str(directory_workspace.path)]
    done = await asyncio.to_thread(subprocess.run, run, check=False, env={"PYTHONPATH": str(Path.cwd())})
    assert done.returncode == -9
    assert directory_workspace.get("cfg.toml") == b"o" * 1024
    assert directory_workspace.mode("cfg.toml") == 0o600


async def test_full_disk_changes_nothing(
    directory_workspace: DirectoryWorkspace, monkeypatch: pytest.MonkeyPatch
):
    """BR-044: old content and mode stay, no temporary file or directory is left, in both writing tools."""
    directory_workspace.put("run.sh", "old\n", 0o755)
    before = directory_workspace.picture()

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for path in ("run.sh", "new/deep/file"):
        refusal = await directory_workspace.refusal("write_file", path=path, content="x" * 1000)
        assert refusal["code"] == "no_space"
        assert directory_workspace.picture() == before
    patch = "*** Begin Patch\n*** Update File: run.sh\n@@\n-old\n+new\n*** Add File: n/x\n+x\n*** End Patch"
    assert (await directory_workspace.refusal("apply_patch", patch=patch))["code"] == "no_space"
    assert directory_workspace.picture() == before


@pytest.mark.skipif(os.getuid() != 0, reason="mounting a small file system needs root")
async def test_really_full_disk_changes_nothing(directory_workspace: DirectoryWorkspace):
    """BR-044: on a file system of 1 MiB."""
    small = directory_workspace.path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small)], check=False).returncode:  # noqa: ASYNC221
        pytest.skip("mounting is not allowed here")
    try:
        directory_workspace.put("small/run.sh", "old\n", 0o755)
        refusal = await directory_workspace.refusal(
            "write_file", path="small/run.sh", content="x" * 2_000_000
        )
        assert refusal["code"] == "no_space"
        assert [path.name for path in small.iterdir()] == ["run.sh"]
        assert directory_workspace.get("small/run.sh") == b"old\n"
        assert directory_workspace.mode("small/run.sh") == 0o755
    finally:
        subprocess.run(["umount", str(small)], check=True)  # noqa: ASYNC221


async def test_links_are_shown_not_followed(tool_workspace: ToolWorkspace):
    """BR-046: every real entry once, cycles and the way out included."""
    tool_workspace.make_directory("a/b")
    tool_workspace.link("a/b/up", "../..")
    tool_workspace.link("self", "self")
    tool_workspace.link("root", "/")
    tool_workspace.link("x", "y")
    tool_workspace.link("y", "x")
    listing = await tool_workspace.result("list_dir", depth=8)
    assert entries(listing) == {
        "a": "directory",
        "root": "link",
        "self": "link",
        "x": "link",
        "y": "link",
        "a/b": "directory",
        "a/b/up": "link",
    }
    assert {entry["path"]: entry.get("target") for entry in listing["entries"]}["root"] == "/"
    for name in ("self", "x"):
        for tool, more in (("read_file", {}), ("write_file", {"content": "x"}), ("list_dir", {})):
            refusal = await tool_workspace.refusal(tool, path=name, **more)
            assert refusal["code"] == "link_loop", (tool, name)
    for path in ("root/etc/hostname", "a/b/up/../../etc"):
        assert (await tool_workspace.refusal("read_file", path=path))["code"] == "outside_workspace"
    assert (await tool_workspace.refusal("list_dir", path="root"))["code"] == "outside_workspace"
    assert tool_workspace.is_link("self")


async def test_link_swapped_in_after_the_check_leads_nowhere(directory_workspace: DirectoryWorkspace):
    """BR-046, BR-011: what was opened is checked again, for reading and for writing."""
    victim = directory_workspace.outside / "sub" / "f"
    victim.parent.mkdir()
    victim.write_text("secret\n")
    directory_workspace.put("real/sub/f", "plain\n")
    workspace = Workspace(directory_workspace.path)
    path = workspace.resolve("real/sub/f")
    (directory_workspace.path / "real").rename(directory_workspace.path / "moved")
    directory_workspace.link("real", str(directory_workspace.outside))
    with pytest.raises(Refused) as read:
        workspace.open_file(path)
    assert read.value.code == "outside_workspace"
    with pytest.raises(Refused, match="became a link"):
        write_atomically(path, b"owned\n", keep=None, create=False)
    assert [entry.name for entry in victim.parent.iterdir()] == ["f"]
    assert victim.read_text() == "secret\n"


async def test_hundred_thousand_entries_are_bounded(tool_workspace: ToolWorkspace):
    """BR-047: fast, in stable order, honest about the rest, and the loop serves others meanwhile."""
    tool_workspace.make_many("many", 100_000)
    tool_workspace.put(".gitignore", "*.o\n*.pyc\nbuild/\nnode_modules/\n/dist\n")
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticking = asyncio.create_task(tick())
    began_s = time.process_time()
    listing = await tool_workspace.result("list_dir", path="many")
    took_s = time.process_time() - began_s  # a busy machine is not our fault
    ticking.cancel()
    assert took_s < 2
    assert ticks > 3
    assert [entry["path"] for entry in listing["entries"]] == [f"many/f{n:06}" for n in range(500)]
    assert listing["truncated"] is True
    assert listing["total"] == 100_000
    assert "100000 entries, showing the first 500" in listing["note"]
    tree = await tool_workspace.result("list_dir", depth=8)
    assert len(tree["entries"]) == 500
    assert tree["truncated"] is True


async def test_gitignore_is_respected(tool_workspace: ToolWorkspace):
    """BR-047: nested files, negation, anchors, and no noise from .git and node_modules."""
    for name in (
        "a.o",
        "keep.o",
        "sub/b.o",
        "sub/c.txt",
        "sub/deep/c.txt",
        "node_modules/m/x.js",
        ".git/HEAD",
        "dist/x",
    ):
        tool_workspace.put(name, "x")
    tool_workspace.put(".gitignore", "*.o\n!keep.o\nnode_modules/\n/dist\n")
    tool_workspace.put("sub/.gitignore", "!b.o\n/c.txt\n!\n")
    listing = await tool_workspace.result("list_dir", depth=4)
    assert [entry["path"] for entry in listing["entries"]] == [
        "sub",
        ".gitignore",
        "keep.o",
        "sub/deep",
        "sub/.gitignore",
        "sub/b.o",
        "sub/deep/c.txt",
    ]
    assert listing["ignored"] == 5
    everything = await tool_workspace.result("list_dir", depth=1, include_ignored=True)
    assert {".git", "node_modules", "dist", "a.o"} <= set(entries(everything))
    asked = await tool_workspace.result("list_dir", path="node_modules", depth=2)
    assert list(entries(asked)) == ["node_modules/m", "node_modules/m/x.js"]


async def test_depth_and_sizes(tool_workspace: ToolWorkspace):
    """Level by level, directories first, files with their size."""
    tool_workspace.put("b/c/d.txt", "123")
    tool_workspace.put("a.txt", "12")
    one = await tool_workspace.result("list_dir", depth=1)
    assert one["entries"] == [
        {"path": "b", "type": "directory"},
        {"path": "a.txt", "type": "file", "size": 2},
    ]
    assert one["truncated"] is False
    assert list(entries(await tool_workspace.result("list_dir"))) == ["b", "a.txt", "b/c"]
    assert list(entries(await tool_workspace.result("list_dir", depth=3))) == [
        "b",
        "a.txt",
        "b/c",
        "b/c/d.txt",
    ]
    cut = await tool_workspace.result("list_dir", depth=3, limit=2)
    assert (len(cut["entries"]), cut["truncated"]) == (2, True)


async def test_gitignore_that_is_a_fifo_or_a_link_is_passed_over(tool_workspace: ToolWorkspace):
    """BR-040, BR-046: nothing blocks, nothing outside is read."""
    tool_workspace.make_fifo(".gitignore")
    tool_workspace.put("sub/x", "x")
    tool_workspace.link("sub/.gitignore", "/etc/passwd")
    listing = await tool_workspace.result("list_dir")
    assert set(entries(listing)) == {".gitignore", "sub", "sub/x", "sub/.gitignore"}


async def test_odd_names_are_listed_once_and_can_be_read_back(tool_workspace: ToolWorkspace):
    """BR-048: undecodable, NFC and NFD, newline, leading dash, and a name that looks like an escape."""
    names = [
        b"bad\xe9.txt",
        "caf\u00e9.txt".encode(),
        "cafe\u0301.txt".encode(),
        b"new\nline.txt",
        b"-rf",
        b"bad\\xe9.txt",
    ]
    for name in names:
        tool_workspace.put_raw(name, name.hex().encode())
    listing = await tool_workspace.result("list_dir")
    assert len(listing["entries"]) == len(names)
    contents = {
        (await tool_workspace.result("read_file", path=entry["path"]))["content"]
        for entry in listing["entries"]
    }
    assert contents == {f"1\t{name.hex()}\n" for name in names}
    assert "bad\\xe9.txt" in entries(listing)
    await tool_workspace.result("write_file", path="bad\\xe9.txt", content="again")
    assert tool_workspace.get_raw(b"bad\xe9.txt") == b"again"


@pytest.mark.parametrize("path", ["a\0b", "\ud800", "x" * 300, "/".join(["d"] * 3000)])
async def test_unusable_path_is_refused_by_every_tool(tool_workspace: ToolWorkspace, path: str):
    """BR-048: NUL, broken Unicode and over-long names are answers, not crashes."""
    calls: list[tuple[str, dict[str, str]]] = [
        ("read_file", {}),
        ("write_file", {"content": "x"}),
        ("list_dir", {}),
    ]
    for tool, more in calls:
        refusal = await tool_workspace.unchecked(tool, path=path, **more)
        assert refusal.is_error
        assert refusal.result["code"] == "bad_path"
        refusal.text().encode()
    assert tool_workspace.picture() == {}


async def test_saved_outputs_may_be_read_but_not_written(tool_workspace: ToolWorkspace):
    """Decision 11: read_file takes the workspace and the output directory, nothing else."""
    tool_workspace.put("../out/x.log", "out\n")
    saved = tool_workspace.output_dir / "x.log"
    read = await tool_workspace.result("read_file", path=str(saved))
    assert read["content"] == "1\tout\n"
    assert read["path"] == str(saved)
    for tool, more in (("write_file", {"content": "x"}), ("list_dir", {})):
        refusal = await tool_workspace.refusal(tool, path=str(saved), **more)
        assert refusal["code"] == "outside_workspace"
    tool_workspace.link("../out/leak", "/proc/self/environ")
    leak = await tool_workspace.refusal("read_file", path=str(tool_workspace.output_dir / "leak"))
    assert leak["code"] == "outside_workspace"


async def test_five_tools_with_closed_schemas_and_fitting_traits(directory_workspace: DirectoryWorkspace):
    """Names and arguments as documented; unknown arguments are refused by the schema."""
    expected = {
        "shell": {"command", "workdir", "timeout_s", "background"},
        "read_file": {"path", "offset", "limit", "column_offset"},
        "write_file": {"path", "content", "mode"},
        "list_dir": {"path", "depth", "limit", "include_ignored"},
        "apply_patch": {"patch"},
    }
    found = {tool.definition.name: tool for tool in directory_workspace.local.tools}
    assert {name: set(tool.definition.parameters["properties"]) for name, tool in found.items()} == expected
    for name, tool in found.items():
        assert tool.definition.parameters["additionalProperties"] is False
        assert tool.traits.source == "local"
        assert tool.traits.domain == "container"
        assert tool.traits.owner == "local"
        assert tool.traits.rate_limit is None
        assert tool.traits.read_only is (name in {"read_file", "list_dir"})

"""What holds for every text that is read or shown."""

from __future__ import annotations

import io
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.support.text_files import Style, styles
from tool_registry.context import ToolContext
from worker.tools.command_output import CommandOutput
from worker.tools.line_reader import LineScanner
from worker.tools.output_buffer import HEAD_BYTES, TAIL_BYTES, HeadAndTail, SavedOutput
from worker.tools.read_file import BUDGET_BYTES, ReadFile
from worker.tools.terminal_text import TerminalText
from worker.tools.text_encoding import TextEncoding
from worker.tools.text_file import TextFile
from worker.tools.workspace_paths import Workspace, printable_name

printable = st.characters(blacklist_categories=("Cs", "Cc")) | st.just("\t")
long = st.sampled_from([0, 0, 0, 999, 1000, 1001, 30_000])
characters = st.characters(blacklist_categories=("Cs",), blacklist_characters="\0\r")


@settings(deadline=None)
@given(
    text=st.text(characters | st.sampled_from("\n"), max_size=300),
    limit=st.integers(1, 5),
    width=st.integers(1, 7),
    budget=st.integers(20, 200),
)
def test_windows_put_together_are_the_file(text: str, limit: int, width: int, budget: int):
    """BR-041: every line once, cut lines continued by column, always forward."""
    data = text.encode()
    encoding = TextEncoding.of_head(b"")
    pieces: list[str] = []
    line, column = 1, 1
    while True:
        one = column > 1
        scanner = LineScanner(
            first=line,
            limit=1 if one else limit,
            column=column,
            line_characters=width,
            budget_bytes=budget,
        )
        window = scanner.scan(io.BytesIO(data), encoding)
        if not window.lines:
            break
        for found in window.lines:
            pieces.append(found.text)
            assert len(found.text) <= width
            if found.next_column is not None:
                line, column = found.number, found.next_column
                break
            pieces.append("\n")
            line, column = found.number + 1, 1
    assert "".join(pieces) == (text if text.endswith("\n") or not text else text + "\n")


@settings(deadline=None, max_examples=100)
@given(
    parts=st.lists(st.tuples(st.text(printable, max_size=30), long), max_size=8),
    style=styles,
    limit=st.integers(1, 4),
)
def test_windows_of_the_tool_put_together_are_the_file(
    parts: list[tuple[str, int]], style: Style, limit: int
):
    """BR-041, BR-015: by next_offset and next_column_offset, in every encoding and with every line ending."""
    rows = [text + "x\u00e9" * count for text, count in parts]
    assume(style.encoding != "latin-1" or "".join(rows).isascii())  # other bytes are shown escaped
    assume(not (style.ending == "\r" and len(rows) == 1 and style.final_newline))  # shows no line ending
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "f").write_bytes(style.store(rows))
        tool = ReadFile(Workspace(Path(directory)))
        lines: list[str] = []
        offset: int | None = 1
        while offset is not None:
            window = read(tool, path="f", offset=offset, limit=limit)
            shown = window["content"].split("\n")[:-1]
            cut = {one["line"]: one["next_column_offset"] for one in window.get("cut_lines", ())}
            for row in shown:
                number, _, text = row.partition("\t")
                assert int(number) == len(lines) + 1
                lines.append(text + rest_of_line(tool, int(number), cut.get(int(number))))
            offset = window.get("next_offset")
    expected = rows if style.final_newline or not rows or rows[-1] else rows[:-1]
    assert lines == expected


def rest_of_line(tool: ReadFile, number: int, column: int | None) -> str:
    rest = ""
    while column is not None:
        window = read(tool, path="f", offset=number, column_offset=column)
        rest += window["content"].split("\t", 1)[1].removesuffix("\n")
        ahead = [one["next_column_offset"] for one in window.get("cut_lines", ())]
        assert not ahead or ahead[0] > column
        column = ahead[0] if ahead else None
    return rest


def read(tool: ReadFile, **params: Any) -> dict[str, Any]:
    output = anyio.run(tool.execute, params, ToolContext(job_id="j", call_id="c"))
    assert not output.is_error, output.result
    assert len(output.result["content"].encode()) <= BUDGET_BYTES
    return output.result


def without_cursor(data: bytes) -> bytes:
    """Any bytes but those that move a cursor: where a very long line is given out depends on the pieces."""
    return bytes(byte if byte >= 0x20 or byte in b"\0\n" else 0x41 for byte in data)


@settings(deadline=None)
@given(
    parts=st.lists(
        st.tuples(st.binary(min_size=1, max_size=200).map(without_cursor), st.sampled_from([1, 2, 50, 900])),
        max_size=9,
    )
)
def test_shown_output_is_bounded_and_valid_however_it_comes(parts: list[tuple[bytes, int]]):
    """BR-029, BR-031: any bytes in any pieces; both ends are those of what a terminal would show."""
    pieces = [data * count for data, count in parts]
    with tempfile.TemporaryDirectory() as directory:
        output = CommandOutput(Path(directory), "x")
        for piece in pieces:
            output.data_received(piece)
        output.connection_lost(None)
        shown = output.freeze()
        terminal = TerminalText()
        text = b"".join(pieces).decode("utf-8", "backslashreplace")
        whole = terminal.feed(text) + terminal.finish()
        assert shown.shown_bytes <= HEAD_BYTES + TAIL_BYTES
        if not shown.truncated:
            assert shown.text() == whole
            return
        head, _, rest = shown.text().partition("\n[... ")
        assert whole.startswith(head)
        assert whole.endswith(rest.partition(" ...]\n")[2])
        assert output.saved is not None
        assert b"".join(pieces).endswith(output.saved.path.read_bytes()[-1000:])


@given(
    pieces=st.lists(st.text(characters, max_size=40), max_size=30),
    head=st.integers(4, 60),
    tail=st.integers(4, 60),
)
def test_head_and_tail_are_bounded_and_whole(pieces: list[str], head: int, tail: int):
    """BR-029, BR-031: never over the bound, no character split, the missing part counted exactly."""
    kept = HeadAndTail(head, tail)
    for piece in pieces:
        kept.feed(piece)
    text = "".join(pieces)
    shown = kept.text()
    if not kept.truncated:
        assert shown == text
        return
    assert kept.shown_bytes <= head + tail
    start, _, rest = shown.partition("\n[... ")
    end = rest.partition(" ...]\n")[2]
    assert text.startswith(start)
    assert text.endswith(end)
    missing = len(text.encode()) - len(start.encode()) - len(end.encode())
    assert rest.startswith(f"{missing} bytes")
    assert len(text.encode()) > head + tail - 8


@given(data=st.binary(max_size=400), cuts=st.lists(st.integers(0, 400), max_size=5))
def test_terminal_text_does_not_depend_on_how_the_stream_is_cut(data: bytes, cuts: list[int]):
    """BR-031, BR-036: pieces of any size give the same text."""
    text = data.decode("utf-8", "backslashreplace") + "\x1b[2K\rdone\x1b[0m"
    whole = TerminalText()
    expected = whole.feed(text) + whole.finish()
    parted = TerminalText()
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    got = "".join(parted.feed(text[start:end]) for start, end in pairwise(places))
    assert got + parted.finish() == expected


@given(text=st.text(st.characters(blacklist_categories=("Cs", "Cc")) | st.sampled_from("\n\t")))
def test_plain_text_passes_the_terminal_unchanged(text: str):
    """BR-036: only control characters are interpreted."""
    terminal = TerminalText()
    assert terminal.feed(text) + terminal.finish() == text


@given(data=st.binary(max_size=200), mark=st.sampled_from([b"", b"\xef\xbb\xbf"]))
def test_decoding_and_encoding_a_file_gives_its_bytes(data: bytes, mark: bytes):
    """BR-015, BR-016: nothing is lost, whatever the bytes are."""
    if TextEncoding.of_head(mark + data).codec != "utf-8":
        return
    file = TextFile.decode(mark + data)
    assert file.encode(list(file.lines)) == mark + data


@given(one=st.binary(min_size=1, max_size=20), two=st.binary(min_size=1, max_size=20))
def test_two_names_never_share_a_spelling(one: bytes, two: bytes):
    """BR-048: escaped names stay apart, and are valid Unicode."""
    spelled = [printable_name(name.decode("utf-8", "surrogateescape")) for name in (one, two)]
    "".join(spelled).encode()
    assert (spelled[0] == spelled[1]) is (one == two)


@settings(deadline=None, max_examples=50)
@given(pieces=st.lists(st.binary(max_size=300), max_size=20))
def test_saved_output_is_bounded_and_ends_with_the_newest(pieces: list[bytes]):
    """BR-029: the file never outgrows its bound and holds the end."""
    with tempfile.TemporaryDirectory() as directory:
        saved = SavedOutput(Path(directory), "x", limit_bytes=1000)
        for piece in pieces:
            saved.write(piece)
            assert saved.path.stat().st_size <= 1000
        saved.close()
        whole = b"".join(pieces)
        assert whole.endswith(saved.path.read_bytes().removeprefix(b"[... older output was dropped ...]\n"))

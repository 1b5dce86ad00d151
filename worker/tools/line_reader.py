"""A window of lines of a file of any size."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from worker.tools.text_encoding import TextEncoding

CHUNK_BYTES = 1024 * 1024
MAX_LINE_CHARACTERS = 2000


@dataclass(slots=True)
class Line:
    """A line, or the part of it that was asked for.

    Attributes:
        number: 1-based.
        text: without its line ending.
        characters: length of the whole line.
        next_column: where the rest begins, 1-based; None when nothing is missing.
    """

    number: int
    text: str
    characters: int
    next_column: int | None = None


@dataclass(slots=True)
class Window:
    r"""What was read.

    Attributes:
        lines: in order.
        total_lines: of the whole file; the last one counts without a newline too.
        next_line: the first line after the window, when there is one.
        invalid: whether bytes had to be shown escaped.
        separator: what ends lines: `\n`, or `\r` in files that hold no other.
        crlf: whether lines end in `\r\n`.
    """

    lines: list[Line] = field(default_factory=list[Line])
    total_lines: int = 0
    next_line: int | None = None
    invalid: bool = False
    separator: str = "\n"
    crlf: bool = False


def decoded_chunks(stream: BinaryIO, encoding: TextEncoding, window: Window) -> Iterator[str]:
    """The text piece by piece; bytes that are no text are escaped, and noted in `window`."""
    decoder = codecs.getincrementaldecoder(encoding.codec)("strict")
    escaping = codecs.getincrementaldecoder(encoding.codec)("backslashreplace")
    while True:
        chunk = stream.read(CHUNK_BYTES)
        state = decoder.getstate()
        try:
            yield decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError:
            window.invalid = True
            decoder = escaping
            decoder.setstate(state)
            yield decoder.decode(chunk, final=not chunk)
        if not chunk:
            return


class LineScanner:
    """Cuts a stream of text into lines and keeps the window that was asked for.

    Args:
        first: first wanted line, 1-based.
        limit: how many lines.
        column: first wanted character of each line, 1-based.
        line_characters: at most so many characters of one line.
        budget_bytes: at most so much text in all, UTF-8; the first line always fits in part.
    """

    def __init__(
        self, *, first: int, limit: int, column: int, line_characters: int, budget_bytes: int
    ) -> None:
        self._first = first
        self._end = first + limit
        self._skip = column - 1
        self._line_characters = line_characters
        self._budget_bytes = budget_bytes
        self._number = 1
        self._text = ""
        self._characters = 0
        self._open = False
        self._last = ""

    def scan(self, stream: BinaryIO, encoding: TextEncoding) -> Window:
        """Read the whole stream; memory stays bounded."""
        window = Window()
        chunks = decoded_chunks(stream, encoding, window)
        first = next(chunks)
        if "\n" not in first and "\r" in first[:-1]:
            window.separator = "\r"
        window.crlf = "\r\n" in first
        self._take(first, window)
        for chunk in chunks:
            self._take(chunk, window)
        if self._open:
            self._end_line(window)
        window.total_lines = self._number - 1
        if window.next_line is not None and window.next_line > window.total_lines:
            window.next_line = None
        return window

    def _take(self, chunk: str, window: Window) -> None:
        start = 0
        while start < len(chunk):
            if not self._first <= self._number < self._end:
                start = self._skip_lines(chunk, start, window.separator)
                continue
            stop = chunk.find(window.separator, start)
            self._extend(chunk, start, len(chunk) if stop < 0 else stop)
            if stop < 0:
                return
            self._end_line(window)
            start = stop + 1

    def _skip_lines(self, chunk: str, start: int, separator: str) -> int:
        """Pass over lines outside the window, all at once after it."""
        if self._number >= self._end:
            self._number += chunk.count(separator, start)
            self._open = not chunk.endswith(separator)
            return len(chunk)
        count = chunk.count(separator, start)
        if self._number + count < self._first:
            self._number += count
            self._open = not chunk.endswith(separator)
            return len(chunk)
        while self._number < self._first:
            start = chunk.index(separator, start) + 1
            self._number += 1
        self._open = False
        return start

    def _extend(self, chunk: str, start: int, stop: int) -> None:
        self._open = True
        # One more than is shown, so that a carriage return before the newline can be told from a cut.
        room = self._line_characters + 1 - len(self._text)
        begin = start + max(0, self._skip - self._characters)
        if room > 0:
            self._text += chunk[begin : min(stop, begin + room)] if begin < stop else ""
        self._characters += stop - start
        self._last = chunk[stop - 1] if stop > start else self._last

    def _end_line(self, window: Window) -> None:
        text, characters = self._text, self._characters
        if window.separator == "\n" and characters and self._last == "\r":
            characters -= 1
            text = text[: max(0, characters - self._skip)]
        if self._first <= self._number < self._end:
            self._keep(Line(self._number, text[: self._line_characters], characters), window)
        self._number += 1
        self._text, self._characters, self._open, self._last = "", 0, False, ""

    def _keep(self, line: Line, window: Window) -> None:
        size = len(line.text.encode()) + 8
        if size > self._budget_bytes:
            if window.lines:
                self._end = line.number
                window.next_line = line.number
                return
            line.text = line.text.encode()[: self._budget_bytes - 8].decode(errors="ignore")
            size = self._budget_bytes
        self._budget_bytes -= size
        shown_to = min(self._skip, line.characters) + len(line.text)
        line.next_column = shown_to + 1 if shown_to < line.characters else None
        line.text = line.text.replace("\0", "\\x00")
        window.lines.append(line)
        window.next_line = line.number + 1

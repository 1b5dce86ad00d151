"""Outputs of any length in bounded memory and disk."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import BinaryIO

HEAD_BYTES = 32 * 1024
TAIL_BYTES = 32 * 1024
SAVED_BYTES = 32 * 1024 * 1024


class HeadAndTail:
    """Keeps the beginning and the end of a text, and counts what lies between.

    Args:
        head_bytes: at most so much of the beginning, UTF-8.
        tail_bytes: at most so much of the end.
    """

    def __init__(self, head_bytes: int = HEAD_BYTES, tail_bytes: int = TAIL_BYTES) -> None:
        self._head_bytes = head_bytes
        self._tail_bytes = tail_bytes
        self._head = bytearray()
        self._head_full = False
        self._tail = bytearray()
        self.total_bytes = 0
        self._total_lines = 0

    def feed(self, text: str) -> None:
        """Take the next piece."""
        data = text.encode()
        self.total_bytes += len(data)
        self._total_lines += data.count(b"\n")
        if not self._head_full:
            cut = self._head_bytes - len(self._head)
            if cut < len(data):
                self._head_full = True
                while cut > 0 and _continues(data[cut]):
                    cut -= 1
            self._head += data[:cut]
            data = data[cut:]
        self._tail += data
        if len(self._tail) > 2 * self._tail_bytes:
            del self._tail[: -self._tail_bytes]

    @property
    def truncated(self) -> bool:
        """Whether a part is missing."""
        return self.total_bytes > len(self._head) + len(self._shown_tail())

    @property
    def shown_bytes(self) -> int:
        """How much of the text is kept."""
        return len(self._head) + len(self._shown_tail())

    def text(self, where: str | None = None) -> str:
        """What was kept; a line in the middle says how much is missing, and `where` the whole is."""
        head, tail = bytes(self._head), self._shown_tail()
        if not self.truncated:
            return (head + tail).decode()
        missing = self.total_bytes - len(head) - len(tail)
        lines = self._total_lines - head.count(b"\n") - tail.count(b"\n")
        place = f"; the whole is in {where}" if where else ""
        return f"{head.decode()}\n[... {missing} bytes ({lines} lines) left out{place} ...]\n{tail.decode()}"

    def _shown_tail(self) -> bytes:
        tail = bytes(self._tail[-self._tail_bytes :])
        start = 0
        if len(self._tail) > self._tail_bytes or self.total_bytes > len(self._head) + len(self._tail):
            while start < len(tail) and _continues(tail[start]):
                start += 1
        return tail[start:]


def _continues(byte: int) -> bool:
    """Whether a byte is inside a UTF-8 character, not its first."""
    return byte & 0xC0 == 0x80


class SavedOutput:
    """A file that holds an output as it came; beyond the bound its older half is dropped.

    Args:
        directory: where the file is made, readable by this user only.
        name: start of the file's name.
        limit_bytes: how large it may grow.
    """

    def __init__(self, directory: Path, name: str, limit_bytes: int = SAVED_BYTES) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, path = tempfile.mkstemp(prefix=f"{name}-", suffix=".log", dir=directory)
        self._stream: BinaryIO = os.fdopen(descriptor, "w+b", buffering=0)
        self._limit_bytes = limit_bytes
        self._size_bytes = 0
        self.path = Path(path)
        self.failure: str | None = None

    def write(self, data: bytes) -> None:
        """Append; a full disk stops the file, never the command."""
        if self.failure is not None:
            return
        try:
            if self._size_bytes + len(data) > self._limit_bytes:
                self._drop_older_half()
            self._stream.write(data)
            self._size_bytes += len(data)
        except OSError as error:
            self.failure = error.strerror or str(error)

    def close(self) -> None:
        """Close the file; it stays readable by its path."""
        self._stream.close()

    def remove(self) -> None:
        """Close and delete the file."""
        self.close()
        self.path.unlink(missing_ok=True)

    def _drop_older_half(self) -> None:
        self._stream.seek(max(0, self._size_bytes - self._limit_bytes // 2))
        newer = self._stream.read()
        notice = b"[... older output was dropped ...]\n"
        self._stream.seek(0)
        self._stream.truncate()
        self._stream.write(notice + newer)
        self._size_bytes = len(notice) + len(newer)

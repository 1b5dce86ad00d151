"""How a file's bytes are text."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

# UTF-32 first: its little-endian mark begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_TYPES = (
    (b"\x89PNG\r\n", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF8", "GIF image"),
    (b"%PDF-", "PDF document"),
    (b"PK\x03\x04", "ZIP archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x7fELF", "ELF program"),
    (b"SQLite format 3\0", "SQLite database"),
    (b"\0asm", "WebAssembly module"),
)
_SNIFFED_BYTES = 8192


@dataclass(frozen=True, slots=True)
class TextEncoding:
    """A codec and the byte-order mark before the text.

    Attributes:
        codec: Python's name of it.
        mark: the mark's bytes; empty without one.
    """

    codec: str
    mark: bytes

    @classmethod
    def of_head(cls, head: bytes) -> TextEncoding:
        """What the first bytes say; UTF-8 when they say nothing."""
        for mark, codec in _MARKS:
            if head.startswith(mark):
                return cls(codec, mark)
        return cls("utf-8", b"")


def binary_type(head: bytes) -> str | None:
    """The name of a file's kind when its first bytes are no text, else None.

    Text without a byte-order mark holds no NUL, and only few control characters.
    """
    head = head[:_SNIFFED_BYTES]
    for magic, name in _TYPES:
        if head.startswith(magic):
            return name
    if TextEncoding.of_head(head).codec != "utf-8":
        return None
    controls = sum(byte < 32 and byte not in b"\t\n\r\f\b\x1b" for byte in head)
    if b"\0" in head or controls * 10 > len(head):
        return "binary data"
    return None

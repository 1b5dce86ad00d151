"""A text file as lines, byte for byte reversible."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from worker.tools.refusal import Refused
from worker.tools.text_encoding import TextEncoding

_UNDECODED = re.compile("[\udc80-\udcff]")
_BEYOND_ASCII = re.compile("[^\x00-\x7f\udc80-\udcff]")
_HIGH_LATIN = re.compile("[\x80-\xff]")


@dataclass(frozen=True, slots=True)
class TextFile:
    """A decoded file.

    Attributes:
        encoding: codec and byte-order mark.
        lines: each with its own ending; bytes that are no UTF-8 stand as surrogates, so that nothing is lost.
        latin_1: the file is no UTF-8 and looks like Latin-1: what is added is encoded as such.
    """

    encoding: TextEncoding
    lines: tuple[str, ...]
    latin_1: bool = False

    @classmethod
    def decode(cls, data: bytes, *, cr_ends_lines: bool = True) -> TextFile:
        """Read a file's bytes.

        Args:
            data: all of them.
            cr_ends_lines: take lone carriage returns for line ends when the file has no newline.

        Raises:
            Refused: the byte-order mark promises a Unicode encoding, and the bytes break it.
        """
        encoding = TextEncoding.of_head(data)
        errors = "surrogateescape" if encoding.codec == "utf-8" else "surrogatepass"
        try:
            text = data[len(encoding.mark) :].decode(encoding.codec, errors)
        except UnicodeDecodeError as error:
            raise Refused(
                "bad_encoding", f"The file is not valid {encoding.codec} after its byte-order mark."
            ) from error
        eight_bit = encoding.codec == "utf-8"
        latin_1 = eight_bit and bool(_UNDECODED.search(text)) and not _BEYOND_ASCII.search(text)
        return cls(encoding, tuple(split_lines(text, cr_ends_lines=cr_ends_lines)), latin_1)

    def encode(self, lines: list[str]) -> bytes:
        """The bytes of other lines in this file's encoding, with its byte-order mark."""
        errors = "surrogateescape" if self.encoding.codec == "utf-8" else "surrogatepass"
        return self.encoding.mark + "".join(lines).encode(self.encoding.codec, errors)

    def added(self, text: str) -> str:
        """A new line's text in the form in which `lines` are kept.

        Raises:
            Refused: the file's encoding has no such character.
        """
        if not self.latin_1:
            return text
        stored = _HIGH_LATIN.sub(lambda match: chr(0xDC00 + ord(match[0])), text)
        foreign = _BEYOND_ASCII.search(stored)
        if foreign:
            raise Refused(
                "bad_encoding", f"The file is Latin-1, which has no {foreign[0]!r}; write it in ASCII."
            )
        return stored

    @property
    def undecoded(self) -> bool:
        """Whether some bytes are no UTF-8."""
        return any(_UNDECODED.search(line) for line in self.lines)

    @property
    def ending(self) -> str:
        """How most lines end; a newline when there are none."""
        counts = Counter(line_ending(line) for line in self.lines)
        del counts[""]
        return counts.most_common(1)[0][0] if counts else "\n"

    @property
    def ends_with_newline(self) -> bool:
        """Whether the last line is ended; true for an empty file."""
        return not self.lines or bool(line_ending(self.lines[-1]))


def split_lines(text: str, *, cr_ends_lines: bool) -> list[str]:
    """Cut at newlines only, each line keeping its own; at carriage returns in a file that has no newline."""
    separator = "\r" if cr_ends_lines and "\n" not in text else "\n"
    parts = text.split(separator)
    lines = [part + separator for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


def line_ending(line: str) -> str:
    """The characters that end a line; empty when it is the last one without."""
    for ending in ("\r\n", "\n", "\r"):
        if line.endswith(ending):
            return ending
    return ""


def line_body(line: str) -> str:
    """A line without its ending."""
    return line[: len(line) - len(line_ending(line))]


def as_latin_1(body: str) -> str:
    """Read undecoded bytes as Latin-1."""
    return _UNDECODED.sub(lambda match: chr(ord(match[0]) - 0xDC00), body)


def as_escapes(body: str) -> str:
    r"""Write undecoded bytes as `\xNN`, as read_file shows them."""
    return _UNDECODED.sub(lambda match: f"\\x{ord(match[0]) - 0xDC00:02x}", body)

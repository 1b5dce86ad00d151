"""Random text files and diffs between them, for hypothesis."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from hypothesis import strategies as st

ENCODINGS = {
    "utf-8": b"",
    "utf-8 with mark": b"\xef\xbb\xbf",
    "utf-16-le": b"\xff\xfe",
    "utf-16-be": b"\xfe\xff",
    "latin-1": b"",
}
_WORDS = st.sampled_from(
    ["", "a", "b", "x = 1", "  y", "\tz", "end", "}", "-- c", "++ d", "caf\u00e9", "@@ e", "*** f", "\\ g"]
)
lines = st.lists(_WORDS, max_size=12)
endings = st.sampled_from(["\n", "\r\n", "\r"])


@dataclass(frozen=True)
class Style:
    """How a file is stored."""

    ending: str
    final_newline: bool
    encoding: str

    def store(self, text_lines: list[str]) -> bytes:
        text = self.ending.join(text_lines)
        if text_lines and self.final_newline:
            text += self.ending
        codec = self.encoding.split(" ", 1)[0]
        return ENCODINGS[self.encoding] + text.encode(codec)


styles = st.builds(Style, endings, st.booleans(), st.sampled_from(sorted(ENCODINGS)))


def unified(old: str, new: str, name: str) -> str:
    """A unified diff as git writes it, with markers for missing final newlines."""
    diff = difflib.unified_diff(_rows(old), _rows(new), f"a/{name}", f"b/{name}")
    return "".join(row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n" for row in diff)


def _rows(text: str) -> list[str]:
    parts = text.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def begin_patch(old: list[str], new: list[str], name: str) -> str:
    """One hunk over the whole file in the `*** Begin Patch` format."""
    rows = [row for row in difflib.ndiff(old, new) if not row.startswith("?")]
    body = [f"{row[0]}{row[2:]}" for row in rows]
    return "\n".join(["*** Begin Patch", f"*** Update File: {name}", "@@", *body, "*** End Patch"])

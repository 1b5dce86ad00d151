"""Outputs cut to what a model is shown: head and tail, never inside a character."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_OUTPUT_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Cut:
    """A shortened text.

    Attributes:
        text: head, a line that says what is missing, tail.
        original_bytes: size of the whole.
        shown_bytes: of the whole, how much is shown.
    """

    text: str
    original_bytes: int
    shown_bytes: int


def cut_middle(text: str, limit_bytes: int, *, where: str | None = None) -> Cut | None:
    """Keep the two ends of a text.

    Args:
        text: the whole.
        limit_bytes: of the result, UTF-8, the line in the middle included; 512 at least.
        where: how the rest can be read, for the line in the middle; 200 characters of it are used.

    Returns:
        None when the whole fits.
    """
    if len(text) * 4 <= limit_bytes:
        return None
    data = text.encode("utf-8", "replace")
    if len(data) <= max(limit_bytes, 512):
        return None
    rest = f"; {where[:200]}" if where else ""
    room = max(0, max(limit_bytes, 512) - len(rest.encode("utf-8", "replace")) - 120)
    head = data[: room - room // 2].decode("utf-8", "ignore")
    tail = _tail(data, room // 2)
    shown = len(head.encode()) + len(tail.encode())
    note = f"\n[... {len(data) - shown:,} of {len(data):,} bytes left out{rest} ...]\n"
    return Cut(f"{head}{note}{tail}", len(data), shown)


def _tail(data: bytes, size: int) -> str:
    start = len(data) - size
    while start < len(data) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:].decode("utf-8", "replace")

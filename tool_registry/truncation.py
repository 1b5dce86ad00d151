"""Outputs cut to what a model is shown, never inside a character; arguments, to what is recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

DEFAULT_OUTPUT_BYTES = 64 * 1024
_OUTLINE_CHARS = 64 * 1024
_OF_A_VALUE = 32  # as much as a note in its place takes


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


def outlined(arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments with about 64 KiB of what they hold, in their order, and a note in the place of the rest.

    A text is whole or left out: half of a secret would not be known for one.
    """
    return cast("dict[str, Any]", _Outline().of(arguments))


class _Outline:
    def __init__(self) -> None:
        self._left = _OUTLINE_CHARS

    def of(self, value: Any) -> Any:
        if isinstance(value, dict | list):
            self._left -= _OF_A_VALUE
            if isinstance(value, dict):
                return self._object(cast("dict[str, Any]", value))
            return self._list(cast("list[Any]", value))
        size = len(value) if isinstance(value, str) else 0
        if isinstance(value, int) and value.bit_length() > 64:
            size = value.bit_length() // 3
        return value if self._takes(size) else f"[{size:,} characters left out]"

    def _object(self, given: dict[str, Any]) -> dict[str, Any]:
        shown: dict[str, Any] = {}
        for name, value in given.items():
            if not self._takes(len(name)):
                shown["[left out]"] = f"{len(given) - len(shown):,} more"
                break
            shown[name] = self.of(value)
        return shown

    def _list(self, given: list[Any]) -> list[Any]:
        shown: list[Any] = []
        for value in given:
            if self._left < _OF_A_VALUE:
                shown.append(f"[{len(given) - len(shown):,} more left out]")
                break
            shown.append(self.of(value))
        return shown

    def _takes(self, chars: int) -> bool:
        """Whether there is room for a value of this length; it is taken then."""
        fits = chars + _OF_A_VALUE <= self._left
        self._left -= (chars if fits else 0) + _OF_A_VALUE
        return fits

"""What a guest hands over, as Python's values: read in place, within a budget, and nothing freed.

The binding's own reading turns every element into an object before anybody can look at it - seconds of every
thread's time for a list of half a million - and loses the box of each option, result and variant. The values
say themselves what they are, so no type is asked for; whoever owns them frees them as a whole.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from wasmtime import _ffi as ffi  # values in the library's own form have no public name

_VALUE = cast("Any", ffi.wasmtime_component_val_t)
_SIZE = ctypes.sizeof(_VALUE)
_AT: int = _VALUE.of.offset
_NUMBERS = {
    ffi.WASMTIME_COMPONENT_BOOL.value: "boolean",
    ffi.WASMTIME_COMPONENT_S8.value: "s8",
    ffi.WASMTIME_COMPONENT_U8.value: "u8",
    ffi.WASMTIME_COMPONENT_S16.value: "s16",
    ffi.WASMTIME_COMPONENT_U16.value: "u16",
    ffi.WASMTIME_COMPONENT_S32.value: "s32",
    ffi.WASMTIME_COMPONENT_U32.value: "u32",
    ffi.WASMTIME_COMPONENT_S64.value: "s64",
    ffi.WASMTIME_COMPONENT_U64.value: "u64",
    ffi.WASMTIME_COMPONENT_F32.value: "f32",
    ffi.WASMTIME_COMPONENT_F64.value: "f64",
}
_U8 = ffi.WASMTIME_COMPONENT_U8.value
_CHAR = ffi.WASMTIME_COMPONENT_CHAR.value
_STRING = ffi.WASMTIME_COMPONENT_STRING.value
_ENUM = ffi.WASMTIME_COMPONENT_ENUM.value
_FLAGS = ffi.WASMTIME_COMPONENT_FLAGS.value
_LIST = ffi.WASMTIME_COMPONENT_LIST.value
_TUPLE = ffi.WASMTIME_COMPONENT_TUPLE.value
_RECORD = ffi.WASMTIME_COMPONENT_RECORD.value
_OPTION = ffi.WASMTIME_COMPONENT_OPTION.value
_RESULT = ffi.WASMTIME_COMPONENT_RESULT.value
_VARIANT = ffi.WASMTIME_COMPONENT_VARIANT.value


class TooMuchHanded(Exception):
    """What was handed over is beyond the budget; the message says which part."""


@dataclass(frozen=True, slots=True)
class Case:
    """A result or a variant: which case, and its value."""

    tag: str
    value: Any


class Budget:
    """What may be read in one go."""

    def __init__(self, *, values: int, text_bytes: int, clip: bool = False) -> None:
        """Start full.

        Args:
            values: of any kind, nested ones included.
            text_bytes: of all texts and byte lists together.
            clip: cut texts to what is left rather than refuse them.
        """
        self._values = self._values_left = values
        self._bytes = self._bytes_left = text_bytes
        self._clip = clip

    def take_values(self, number: int) -> None:
        """Count values that are about to be read.

        Raises:
            TooMuchHanded: they are too many.
        """
        self._values_left -= number
        if self._values_left < 0:
            raise TooMuchHanded(f"more than {self._values:,} values")

    def take_bytes(self, size: int) -> int:
        """Count bytes that are about to be read; answers how many may be.

        Raises:
            TooMuchHanded: they are too many.
        """
        if size > self._bytes_left:
            if not self._clip:
                raise TooMuchHanded(f"more than {self._bytes:,} bytes")
            size = self._bytes_left
        self._bytes_left -= size
        return size


def lift(raw: Any, budget: Budget) -> Any:
    """A value of any type but resources, streams and futures.

    Lists are lists, lists of `u8` bytes, tuples tuples, records dicts, enums and flags names, an option its
    value or None, a result or variant a `Case`.

    Raises:
        TooMuchHanded: it is over the budget.
    """
    kind = raw.kind
    if kind in _NUMBERS:
        return getattr(raw.of, _NUMBERS[kind])
    if kind == _STRING:
        size = budget.take_bytes(raw.of.string.size)
        return ctypes.string_at(raw.of.string.data, size).decode("utf-8", "ignore")
    if kind == _OPTION:
        return _content(raw.of.option, budget)
    if kind == _LIST:
        return _list(raw.of.list, budget)
    if kind == _TUPLE:
        return tuple(_items(raw.of.tuple, budget))
    if kind == _RECORD:
        return _record(raw.of.record, budget)
    return _lift_rest(kind, raw.of, budget)


def _lift_rest(kind: int, of: Any, budget: Budget) -> Any:
    if kind == _ENUM:
        return _name(of.enumeration)
    if kind == _CHAR:
        return chr(of.character)
    if kind == _RESULT:
        return Case("ok" if of.result.is_ok else "err", _content(of.result.val, budget))
    if kind == _VARIANT:
        return Case(_name(of.variant.discriminant), _content(of.variant.val, budget))
    assert kind == _FLAGS, "the surface check lets nothing else in"
    return [_name(of.flags.data[at]) for at in range(of.flags.size)]


def _list(items: Any, budget: Budget) -> Any:
    if items.size and items.data[0].kind == _U8:
        budget.take_bytes(items.size)
        return ctypes.string_at(items.data, items.size * _SIZE)[_AT::_SIZE]
    return list(_items(items, budget))


def _items(items: Any, budget: Budget) -> Iterator[Any]:
    budget.take_values(items.size)
    for at in range(items.size):
        yield lift(items.data[at], budget)


def _record(fields: Any, budget: Budget) -> dict[str, Any]:
    budget.take_values(fields.size)
    return {_name(fields.data[at].name): lift(fields.data[at].val, budget) for at in range(fields.size)}


def _content(box: Any, budget: Budget) -> Any:
    if not box:
        return None
    budget.take_values(1)
    return lift(box.contents, budget)


def _name(raw: Any) -> str:
    return ctypes.string_at(raw.data, raw.size).decode()

"""Python's values in the library's own form: what each function here answers writes one value in place.

Everything that can fail, such as encoding a text, is done before the first byte is written: a value that is
half made is freed as if it were whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import byref
from typing import Any, cast

from wasmtime import _ffi as ffi  # values in the library's own form have no public name

Fill = Callable[[Any], None]
_BOXED = cast("Any", ffi.wasmtime_component_val_new)  # pyright: ignore[reportUnknownMemberType]
_VALUE = cast("Any", ffi.wasmtime_component_val_t)


def boolean(flag: bool) -> Fill:  # noqa: FBT001 - it is the value
    """A `bool`."""
    return _plain(ffi.WASMTIME_COMPONENT_BOOL, "boolean", flag)


def u16(number: int) -> Fill:
    """A `u16`; the caller has checked its range."""
    return _plain(ffi.WASMTIME_COMPONENT_U16, "u16", number)


def u64(number: int) -> Fill:
    """A `u64`; the caller has checked its range."""
    return _plain(ffi.WASMTIME_COMPONENT_U64, "u64", number)


def text(content: bytes) -> Fill:
    """A `string` from its UTF-8."""

    def fill(value: Any) -> None:
        value.kind = ffi.WASMTIME_COMPONENT_STRING
        value.of.string = ffi.bytes_to_capi(content)

    return fill


def option(inner: Fill | None) -> Fill:
    """An `option`; None is none."""

    def fill(value: Any) -> None:
        value.kind = ffi.WASMTIME_COMPONENT_OPTION
        value.of.option = None if inner is None else _boxed(inner)

    return fill


def result(inner: Fill, *, ok: bool) -> Fill:
    """A `result` of either side."""

    def fill(value: Any) -> None:
        value.kind = ffi.WASMTIME_COMPONENT_RESULT
        value.of.result.is_ok = ok
        value.of.result.val = _boxed(inner)

    return fill


def record(*fields: tuple[bytes, Fill]) -> Fill:
    """A `record` with its fields in the order of the type."""

    def fill(value: Any) -> None:
        value.kind = ffi.WASMTIME_COMPONENT_RECORD
        ffi.wasmtime_component_valrecord_new_uninit(byref(value.of.record), len(fields))
        for at, (name, inner) in enumerate(fields):
            value.of.record.data[at].name = ffi.bytes_to_capi(name)
            inner(value.of.record.data[at].val)

    return fill


def sequence(items: Sequence[Fill]) -> Fill:
    """A `list`."""

    def fill(value: Any) -> None:
        value.kind = ffi.WASMTIME_COMPONENT_LIST
        ffi.wasmtime_component_vallist_new_uninit(byref(value.of.list), len(items))
        for at, inner in enumerate(items):
            inner(value.of.list.data[at])

    return fill


def several(*items: Fill) -> Fill:
    """A `tuple`."""

    def fill(value: Any) -> None:
        value.kind = ffi.WASMTIME_COMPONENT_TUPLE
        ffi.wasmtime_component_valtuple_new_uninit(byref(value.of.tuple), len(items))
        for at, inner in enumerate(items):
            inner(value.of.tuple.data[at])

    return fill


def _plain(kind: Any, member: str, content: object) -> Fill:
    def fill(value: Any) -> None:
        value.kind = kind
        setattr(value.of, member, content)

    return fill


def _boxed(inner: Fill) -> Any:
    raw = _VALUE()
    inner(raw)
    return _BOXED(byref(raw))

"""Calls of the known world's functions, without the binding's reflection.

The binding reads a function's types anew at every call and walks them for every value, which is most of
what a small call costs. The types of `execute`, `schema` and `description` were compared before anything was
linked, so their values are written and read in place here. `Func.__call__` stays the reference: a test holds
the two together.
"""

from __future__ import annotations

import ctypes
from ctypes import byref
from typing import Any, cast

from wasmtime import Store, WasmtimeError
from wasmtime import _ffi as ffi  # values in the library's own form have no public name
from wasmtime.component import Func

_CALL = cast("Any", ffi.wasmtime_component_func_call)  # pyright: ignore[reportUnknownMemberType]
_BOXED = cast("Any", ffi.wasmtime_component_val_new)  # pyright: ignore[reportUnknownMemberType]
_VALUE = cast("Any", ffi.wasmtime_component_val_t)
_STRING = ffi.WASMTIME_COMPONENT_STRING.value
_OPTION = ffi.WASMTIME_COMPONENT_OPTION.value
_RECORD = ffi.WASMTIME_COMPONENT_RECORD.value


class TooLong(Exception):
    """A text is over its bound; it was dropped unread."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


def call_execute(
    store: Store, function: Func, params: str, context: str | None, *, max_bytes: int
) -> tuple[str | None, str | None]:
    """Call `execute`; answers the response's output and error.

    Raises:
        TooLong: one of them has more than `max_bytes` in UTF-8.
        WasmtimeError: as any call.
    """
    texts = params.encode(), None if context is None else context.encode()
    request = (_VALUE * 1)()
    _fill_request(request[0], *texts)
    try:
        response = _called(store, function, request, 1)
        try:
            fields = response.of.record.data
            return _optional(fields[0].val, max_bytes), _optional(fields[1].val, max_bytes)
        finally:
            ffi.wasmtime_component_val_delete(byref(response))
    finally:
        ffi.wasmtime_component_val_delete(byref(request[0]))


def call_text(store: Store, function: Func, *, max_bytes: int) -> str:
    """Call `schema` or `description`.

    Raises:
        TooLong: the text has more than `max_bytes` in UTF-8.
        WasmtimeError: as any call.
    """
    answer = _called(store, function, None, 0)
    try:
        return _text(answer.of.string, max_bytes)
    finally:
        ffi.wasmtime_component_val_delete(byref(answer))


def _called(store: Store, function: Func, arguments: Any, count: int) -> Any:
    result = _VALUE()
    context = store._context()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - no public way
    target = function._func  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    error = _CALL(byref(target), context, arguments, count, byref(result), 1)
    if error:
        raise WasmtimeError._from_ptr(error)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    return result


def _fill_request(value: Any, params: bytes, context: bytes | None) -> None:
    value.kind = _RECORD
    ffi.wasmtime_component_valrecord_new_uninit(byref(value.of.record), 2)
    fields = value.of.record.data
    fields[0].name = ffi.bytes_to_capi(b"params")
    _fill_string(fields[0].val, params)
    fields[1].name = ffi.bytes_to_capi(b"context")
    fields[1].val.kind = _OPTION
    fields[1].val.of.option = None
    if context is not None:
        inner = _VALUE()
        _fill_string(inner, context)
        fields[1].val.of.option = _BOXED(byref(inner))


def _fill_string(value: Any, text: bytes) -> None:
    value.kind = _STRING
    value.of.string = ffi.bytes_to_capi(text)


def _optional(value: Any, max_bytes: int) -> str | None:
    return _text(value.of.option.contents.of.string, max_bytes) if value.of.option else None


def _text(raw: Any, max_bytes: int) -> str:
    if raw.size > max_bytes:
        raise TooLong(raw.size)
    return ctypes.string_at(raw.data, raw.size).decode()

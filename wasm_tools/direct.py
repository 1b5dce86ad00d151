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

from wasm_tools.lowered import option, record, text

_CALL = cast("Any", ffi.wasmtime_component_func_call)  # pyright: ignore[reportUnknownMemberType]
_VALUE = cast("Any", ffi.wasmtime_component_val_t)


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
    said = option(None if context is None else text(context.encode()))
    fill = record((b"params", text(params.encode())), (b"context", said))
    request = (_VALUE * 1)()
    fill(request[0])
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


def _optional(value: Any, max_bytes: int) -> str | None:
    return _text(value.of.option.contents.of.string, max_bytes) if value.of.option else None


def _text(raw: Any, max_bytes: int) -> str:
    if raw.size > max_bytes:
        raise TooLong(raw.size)
    return ctypes.string_at(raw.data, raw.size).decode()

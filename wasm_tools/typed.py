"""Functions that a component exports under types of its own: one tool each."""

from __future__ import annotations

import ctypes
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from wasmtime import Engine, Store, WasmtimeError
from wasmtime import _ffi as ffi  # to read an answer within a budget
from wasmtime import component as wc

from wasm_tools.causes import Cause, Failure
from wasm_tools.lifted import Budget, TooMuchHanded, lift
from wasm_tools.wit_types import NoJson, WitType, object_schema, read_type, to_guest, to_json

_MAX_EXPORTS = 100
_MAX_VALUES = 50_000
_NEVER_A_TOOL = re.compile(r"init|exports|cabi_.*|wasi:.*")
_VERSION = re.compile(r"@.*")


@dataclass(frozen=True, slots=True)
class TypedExport:
    """An exported function.

    Attributes:
        path: its name, or its interface and its name.
        names: of its parameters.
        result: None where it answers nothing.
    """

    path: tuple[str, ...]
    names: tuple[str, ...]
    types: tuple[WitType, ...]
    result: WitType | None

    @property
    def full_name(self) -> str:
        """As the component says it: `ns:package/interface@1.0.0#function`."""
        return "#".join(self.path)

    @property
    def short_name(self) -> str:
        """Interface and function without package and version."""
        return "_".join(_VERSION.sub("", part).rpartition("/")[2] for part in self.path)

    def schema(self) -> dict[str, Any]:
        """The schema of its parameters as one object."""
        return object_schema(self.names, self.types)


def read_exports(engine: Engine, component: wc.Component) -> tuple[list[TypedExport], list[str]]:
    """The functions that can be tools, and of each other one a line that says why not."""
    found: list[TypedExport] = []
    left_out: list[str] = []
    for path, kind in _functions(engine, component):
        if len(found) == _MAX_EXPORTS:
            left_out.append(f"more than {_MAX_EXPORTS} functions")
            break
        try:
            names, kinds = tuple(name for name, _ in kind.params), tuple(one for _, one in kind.params)
            result = None if kind.result is None else read_type(kind.result)
            found.append(TypedExport(path, names, tuple(map(read_type, kinds)), result))
        except NoJson as error:
            left_out.append(f"{'#'.join(path)} has {error}")
    return found, left_out


def _functions(engine: Engine, component: wc.Component) -> Iterator[tuple[tuple[str, ...], wc.FuncType]]:
    for name, item in component.type.exports(engine).items():
        if _NEVER_A_TOOL.fullmatch(name):
            continue
        if isinstance(item.ty, wc.FuncType):
            yield (name,), item.ty
        elif isinstance(item.ty, wc.ComponentInstanceType):
            for inner, member in item.ty.exports(engine).items():
                if isinstance(member.ty, wc.FuncType) and not inner.startswith("["):
                    yield (name, inner), member.ty


def call_export(
    store: Store, instance: wc.Instance, export: TypedExport, params: dict[str, Any], *, max_bytes: int
) -> tuple[str, bool] | Failure:
    """Call it; answers a text and whether it is the guest's own error.

    An answer's texts have `max_bytes` together, at most.

    Raises:
        NoJson: an argument fits the schema and not the type.
        WasmtimeError: as any call.
    """
    arguments = [
        to_guest(kind, params.get(name)) for name, kind in zip(export.names, export.types, strict=True)
    ]
    index = None
    for part in export.path:
        index = instance.get_export_index(store, part, index)
    function = None if index is None else instance.get_func(store, index)
    assert function is not None, "the surface check found it"
    try:
        value = _called(store, function, arguments, Budget(values=_MAX_VALUES, text_bytes=max_bytes))
    except TooMuchHanded as over:
        return Failure(Cause.LIMIT, f"The tool's answer has {over}, its limit.")
    kind, is_error = export.result, False
    if kind is not None and kind.kind == "result":
        tag, value = value.tag, value.value
        kind, is_error = kind.parts[kind.names.index(tag)], tag == "err"
    if kind is None:
        return ("failed" if is_error else "done"), is_error
    shown = to_json(kind, value)
    text = shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
    return text, is_error


def _called(store: Store, function: wc.Func, arguments: list[Any], budget: Budget) -> Any:
    """As the binding's own call, but the answer is read within a budget.

    Raises:
        TooMuchHanded: it is over the budget.
        WasmtimeError: as any call.
    """
    kinds = function.type(store)
    given = (ffi.wasmtime_component_val_t * len(arguments))()
    ready = 0
    result = ffi.wasmtime_component_val_t()
    context = store._context()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - no public way
    target = function._func  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    try:
        for (_, kind), value in zip(kinds.params, arguments, strict=True):
            kind.convert_to_c(store, value, ctypes.pointer(given[ready]))
            ready += 1
        answers = 0 if kinds.result is None else 1
        place = ctypes.byref(result) if answers else None
        call = cast("Any", ffi.wasmtime_component_func_call)  # pyright: ignore[reportUnknownMemberType]
        error = call(ctypes.byref(target), context, given, ready, place, answers)
        if error:
            raise WasmtimeError._from_ptr(error)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        return lift(result, budget) if answers else None
    finally:
        ffi.wasmtime_component_val_delete(ctypes.byref(result))
        for at in range(ready):
            ffi.wasmtime_component_val_delete(ctypes.byref(given[at]))

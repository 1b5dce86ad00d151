"""Does a component import what we offer, and export what we expect?

wasmtime-py accepts a host function for any declared signature and finds a wrong one only at the call;
so the declared types are compared as texts before anything is linked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from wasmtime import Engine
from wasmtime import component as wc

from wasm_tools.typed import TypedExport, read_exports

VERSION = "1.0.0"
HOST_INTERFACE = f"portside:tool/host@{VERSION}"
TOOL_INTERFACE = f"portside:tool/tool@{VERSION}"
WORLD = f"portside:tool/sandboxed-tool@{VERSION}"
_OUR_INTERFACES = frozenset({"portside:tool/host", "portside:tool/tool"})
MONOTONIC_CLOCK = "wasi:clocks/monotonic-clock"

_RESPONSE = "record{status:u16,headers:list<tuple<string,string>>,body:string}"
_HOST_SIGNATURES = {
    "log": "func(level:enum{trace,debug,info,warn,error},message:string)",
    "now-millis": "func()->u64",
    "secret-exists": "func(name:string)->bool",
    "workspace-read": "func(path:string)->option<string>",
    "http-request": "func(method:string,url:string,headers:list<tuple<string,string>>,body:option<string>,"
    f"timeout-ms:option<u32>)->result<{_RESPONSE},string>",
    "tool-invoke": "func(alias:string,params-json:string)->result<string,string>",
}
_TOOL_SIGNATURES = {
    "execute": "func(req:record{params:string,context:option<string>})"
    "->record{output:option<string>,error:option<string>}",
    "schema": "func()->string",
    "description": "func()->string",
}
_WASI = re.compile(r"wasi:(cli|clocks|filesystem|io|random|sockets)/[a-z0-9-]+@0\.2\.\d+")


class UnfitComponent(Exception):
    """A component whose imports or exports are not those of a tool; the message says which."""


@dataclass(frozen=True, slots=True)
class Surface:
    """What a fitting component imports.

    Attributes:
        host_functions: names of our host interface's functions.
        uses_wasi: it imports some WASI interface.
        clock_versions: versions of the monotonic clock it imports, each shadowed.
        typed: its functions, where it is of another world than ours.
    """

    host_functions: tuple[str, ...]
    uses_wasi: bool
    clock_versions: tuple[str, ...]
    typed: tuple[TypedExport, ...] = ()


def read_surface(engine: Engine, component: wc.Component) -> Surface:
    """Check a component's imports and exports.

    Raises:
        UnfitComponent: another version of our package, an import we don't offer, a missing export, or a
            signature that differs.
    """
    exports = _functions(component.type.exports(engine), engine)
    imports = _functions(component.type.imports(engine), engine)
    _check_version((*exports, *imports))
    typed: tuple[TypedExport, ...] = ()
    if TOOL_INTERFACE in exports:
        _check_exports(exports[TOOL_INTERFACE])
    else:
        typed = _typed(engine, component, exports)
    host: tuple[str, ...] = ()
    clocks: list[str] = []
    uses_wasi = False
    for name, functions in imports.items():
        if name == HOST_INTERFACE:
            _check_host(functions)
            host = tuple(functions)
        elif _WASI.fullmatch(name):
            uses_wasi = True
            interface, _, version = name.partition("@")
            if interface == MONOTONIC_CLOCK:
                clocks.append(version)
        else:
            raise UnfitComponent(
                f"it imports '{name}', which is not offered; a tool may import {HOST_INTERFACE} and WASI 0.2 "
                "without wasi:http"
            )
    return Surface(host, uses_wasi, tuple(clocks), typed)


def _check_version(interfaces: Iterable[str]) -> None:
    """A component of our package speaks one version of it, and it is the one that is offered."""
    for name in interfaces:
        package, _, version = name.partition("@")
        if package in _OUR_INTERFACES and version != VERSION:
            raise UnfitComponent(
                f"it is built for {package}@{version}, and this Portside offers portside:tool@{VERSION}: "
                f"build it with this version's world.wit, or {_other_portside(version)}"
            )


def _other_portside(version: str) -> str:
    newer = [int(part) if part.isdigit() else 0 for part in version.split(".")] > [1, 0, 0]
    return "update Portside" if newer else "look for a newer build of the tool"


def _typed(engine: Engine, component: wc.Component, exports: Mapping[str, object]) -> tuple[TypedExport, ...]:
    typed, left_out = read_exports(engine, component)
    if typed:
        return tuple(typed)
    found = ", ".join(left_out or sorted(exports)) or "nothing"
    raise UnfitComponent(
        f"it exports {found}; expected {TOOL_INTERFACE}, or functions whose types can be written as JSON: "
        f"build it for the world {WORLD}"
    )


def _check_exports(functions: Mapping[str, str]) -> None:
    for name, expected in _TOOL_SIGNATURES.items():
        if functions.get(name) != expected:
            raise UnfitComponent(
                f"its '{name}' is {functions.get(name, 'missing')}; the world {WORLD} expects {expected}"
            )


def _check_host(functions: Mapping[str, str]) -> None:
    for name, signature in functions.items():
        if name not in _HOST_SIGNATURES:
            raise UnfitComponent(f"it imports '{name}' of {HOST_INTERFACE}, which has no such function")
        if signature != _HOST_SIGNATURES[name]:
            raise UnfitComponent(
                f"it imports '{name}' as {signature}; {HOST_INTERFACE} offers {_HOST_SIGNATURES[name]}"
            )


def _functions(items: Mapping[str, Any], engine: Engine) -> dict[str, dict[str, str]]:
    """The signatures by interface; a function outside of one stands under its own name."""
    found: dict[str, dict[str, str]] = {}
    for name, item in items.items():
        kind = item.ty
        if isinstance(kind, wc.ComponentInstanceType):
            members = kind.exports(engine).items()
            found[name] = {n: signature(m.ty) for n, m in members if isinstance(m.ty, wc.FuncType)}
        else:
            found[name] = {}
    return found


def signature(kind: Any) -> str:
    """One text for equal types."""
    match kind:
        case None:
            text = "_"
        case wc.FuncType():
            result = f"->{signature(kind.result)}" if kind.result is not None else ""
            text = f"func({_fields(kind.params)}){result}"
        case wc.RecordType():
            text = f"record{{{_fields(kind.fields)}}}"
        case wc.ListType():
            text = f"list<{signature(kind.element)}>"
        case wc.OptionType():
            text = f"option<{signature(kind.payload)}>"
        case wc.ResultType():
            text = f"result<{signature(kind.ok)},{signature(kind.err)}>"
        case wc.TupleType():
            text = f"tuple<{','.join(signature(element) for element in kind.elements)}>"
        case wc.EnumType():
            text = f"enum{{{','.join(kind.names)}}}"
        case _:
            text = type(kind).__name__.lower()
    return text


def _fields(fields: Any) -> str:
    return ",".join(f"{name}:{signature(kind)}" for name, kind in fields)

"""WIT types as JSON: their schema, and values there and back.

A type is read from the component once, into a tree of our own; what can't stand in JSON, or what the
Python binding can't tell apart, is refused by name.
"""

from __future__ import annotations

import base64
import binascii
import math
from dataclasses import dataclass
from typing import Any, cast

from wasmtime import component as wc

from wasm_tools.lifted import Case

_MAX_DEPTH = 16
_INTEGERS: dict[type, tuple[int, int]] = {
    wc.S8: (-(2**7), 2**7 - 1),
    wc.U8: (0, 2**8 - 1),
    wc.S16: (-(2**15), 2**15 - 1),
    wc.U16: (0, 2**16 - 1),
    wc.S32: (-(2**31), 2**31 - 1),
    wc.U32: (0, 2**32 - 1),
    wc.S64: (-(2**63), 2**63 - 1),
    wc.U64: (0, 2**64 - 1),
}
_PLAIN: dict[type, str] = {
    wc.Bool: "bool",
    wc.F32: "float",
    wc.F64: "float",
    wc.Char: "char",
    wc.String: "string",
}


class NoJson(Exception):
    """A type that has no place in JSON here, or a value that does not fit its type."""


@dataclass(frozen=True, slots=True)
class WitType:
    """A type.

    Attributes:
        kind: `bool`, `integer`, `float`, `char`, `string`, `bytes`, `list`, `record`, `tuple`, `enum`,
            `flags`, `option`, `result` or `variant`.
        names: of fields, cases or flags.
        parts: of fields, cases or elements; None is a case without a value.
        tagged: whether the binding takes values of cases as `Variant`.
        bounds: of an integer.
    """

    kind: str
    names: tuple[str, ...] = ()
    parts: tuple[WitType | None, ...] = ()
    tagged: bool = False
    bounds: tuple[int, int] = (0, 0)


def read_type(kind: Any, depth: int = 0) -> WitType:
    """Read a component's type.

    Raises:
        NoJson: a resource, a stream, or another that has no JSON form.
    """
    if depth > _MAX_DEPTH:
        raise NoJson(f"types nested deeper than {_MAX_DEPTH}")
    if type(kind) in _INTEGERS:
        return WitType("integer", bounds=_INTEGERS[type(kind)])
    if type(kind) in _PLAIN:
        return WitType(_PLAIN[type(kind)])
    return _read_composite(kind, depth + 1)


def _read_composite(kind: Any, inner: int) -> WitType:
    match kind:
        case wc.ListType():
            element = read_type(kind.element, inner)
            return WitType("bytes") if isinstance(kind.element, wc.U8) else WitType("list", parts=(element,))
        case wc.RecordType():
            names, kinds = zip(*kind.fields, strict=True)
            return WitType("record", names, tuple(read_type(one, inner) for one in kinds))
        case wc.TupleType():
            return WitType("tuple", parts=tuple(read_type(one, inner) for one in kind.elements))
        case wc.EnumType() | wc.FlagsType():
            return WitType("enum" if isinstance(kind, wc.EnumType) else "flags", tuple(kind.names))
        case wc.OptionType():
            return _cases("option", kind, [("none", None), ("some", kind.payload)], inner)
        case wc.ResultType():
            return _cases("result", kind, [("ok", kind.ok), ("err", kind.err)], inner)
        case wc.VariantType():
            return _cases("variant", kind, kind.cases, inner)
        case _:
            raise NoJson(f"a {type(kind).__name__.removesuffix('Type').lower()}")


def _cases(name: str, kind: Any, cases: list[tuple[str, Any]], depth: int) -> WitType:
    classes: list[frozenset[type]] = []
    for _, payload in cases:
        found: set[type] = set()
        if payload is not None:
            payload.add_classes(found)
        # The binding writes `object` for a case without a value, which shows as None.
        classes.append(
            frozenset(found - {object} | ({type(None)} if payload is None or object in found else set()))
        )
    tagged: bool = kind._tagged()  # noqa: SLF001 - the binding's own rule, which has no public name
    together = frozenset[type]().union(*classes)
    if not tagged and {bool, int} <= together:
        raise NoJson(
            f"a {name} of both a bool and an integer, which the Python binding takes for one another"
        )
    parts = tuple(None if payload is None else read_type(payload, depth) for _, payload in cases)
    if name == "option" and parts[1] is not None and parts[1].kind == "option":
        raise NoJson("an option of an option")
    return WitType(name, tuple(one for one, _ in cases), parts, tagged)


def object_schema(names: tuple[str, ...], types: tuple[WitType | None, ...]) -> dict[str, Any]:
    """The schema of an object with these members; those that are options may be left out."""
    pairs = [(name, kind) for name, kind in zip(names, types, strict=True) if kind is not None]
    return {
        "type": "object",
        "properties": {name: schema_of(_payload(kind)) for name, kind in pairs},
        "required": [name for name, kind in pairs if kind.kind != "option"],
        "additionalProperties": False,
    }


def _payload(kind: WitType) -> WitType:
    part = kind.parts[1] if kind.kind == "option" else None
    return part or kind


_SCALARS: dict[str, dict[str, Any]] = {
    "bool": {"type": "boolean"},
    "float": {"type": "number"},
    "char": {"type": "string", "minLength": 1, "maxLength": 1},
    "string": {"type": "string"},
    "bytes": {"type": "string", "contentEncoding": "base64", "description": "bytes, as base64"},
}


def schema_of(kind: WitType | None) -> dict[str, Any]:
    """The JSON Schema of a type's values."""
    if kind is None:
        return {"type": "null"}
    if kind.kind in _SCALARS:
        return dict(_SCALARS[kind.kind])
    parts = kind.parts
    match kind.kind:
        case "integer":
            schema: dict[str, Any] = {"type": "integer", "minimum": kind.bounds[0], "maximum": kind.bounds[1]}
        case "list":
            schema = {"type": "array", "items": schema_of(parts[0])}
        case "record":
            schema = object_schema(kind.names, parts)
        case "tuple":
            items = [schema_of(part) for part in parts]
            schema = {"type": "array", "prefixItems": items, "minItems": len(parts), "maxItems": len(parts)}
        case "enum":
            schema = {"type": "string", "enum": list(kind.names)}
        case "flags":
            names = {"type": "string", "enum": list(kind.names)}
            schema = {"type": "array", "items": names, "uniqueItems": True}
        case "option":
            schema = {"anyOf": [schema_of(parts[1]), {"type": "null"}]}
        case _:
            schema = {"anyOf": [_case_schema(*case) for case in zip(kind.names, parts, strict=True)]}
    return schema


def _case_schema(name: str, part: WitType | None) -> dict[str, Any]:
    value = {"type": "boolean", "const": True} if part is None else schema_of(part)
    return {"type": "object", "properties": {name: value}, "required": [name], "additionalProperties": False}


def to_guest(kind: WitType, value: Any) -> Any:
    """A JSON value that fits `schema_of(kind)`, as the binding takes it.

    Raises:
        NoJson: it is no base64, or holds half of a surrogate pair.
    """
    match kind.kind:
        case "integer":
            return int(value)
        case "float":
            return float(value)
        case "char" | "string":
            return _text(value)
        case "bytes":
            return _bytes(value)
        case "flags":
            return set(value)
        case "bool" | "enum":
            return value
        case "list" | "tuple" | "record":
            return _many_to_guest(kind, value)
        case _:
            return _case_to_guest(kind, value)


def _many_to_guest(kind: WitType, value: Any) -> Any:
    if kind.kind == "list":
        return [to_guest(_known(kind.parts[0]), one) for one in value]
    if kind.kind == "tuple":
        return tuple(to_guest(_known(part), one) for part, one in zip(kind.parts, value, strict=True))
    record = wc.Record()
    for name, part in zip(kind.names, kind.parts, strict=True):
        setattr(record, name, to_guest(_known(part), value.get(name)))
    return record


def _case_to_guest(kind: WitType, value: Any) -> Any:
    if kind.kind == "option":
        tag, given = ("none", None) if value is None else ("some", value)
    else:
        ((tag, given),) = cast("dict[str, Any]", value).items()
    part = kind.parts[kind.names.index(tag)]
    inner = None if part is None else to_guest(part, given)
    return wc.Variant(tag, inner) if kind.tagged else inner


def to_json(kind: WitType | None, value: Any) -> Any:
    """A value of `lift`, as JSON; numbers that JSON has not are texts."""
    if kind is None or value is None:
        return None
    match kind.kind:
        case "float":
            shown: Any = value if math.isfinite(value) else str(value)
        case "bytes":
            shown = base64.b64encode(bytes(value)).decode()  # an empty list has no elements to tell its type
        case "list":
            shown = [to_json(kind.parts[0], one) for one in value]
        case "tuple":
            shown = [to_json(part, one) for part, one in zip(kind.parts, value, strict=True)]
        case "flags":
            shown = sorted(value)
        case "record":
            pairs = zip(kind.names, kind.parts, strict=True)
            shown = {name: to_json(part, value[name]) for name, part in pairs}
        case "option":
            shown = to_json(kind.parts[1], value)
        case "result" | "variant":
            shown = _case_to_json(kind, value)
        case _:
            shown = value
    return shown


def _case_to_json(kind: WitType, case: Case) -> Any:
    part = kind.parts[kind.names.index(case.tag)]
    return {case.tag: True if part is None else to_json(part, case.value)}


def _known(part: WitType | None) -> WitType:
    assert part is not None, "only cases have no type"
    return part


def _bytes(value: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise NoJson("a value that should be base64 is not") from None


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise NoJson("a text holds half of a surrogate pair") from None
    return value

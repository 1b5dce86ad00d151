"""Gemini's function declarations: a subset of OpenAPI 3.0, without references."""

from __future__ import annotations

import json
from typing import Any, cast

from orchestrator.domain.shaping.merging import without_combinators
from orchestrator.domain.shaping.notes import Notes
from orchestrator.domain.shaping.subschemas import Schema, rewritten_at

_KNOWN = frozenset(
    {
        "anyOf",
        "default",
        "description",
        "enum",
        "format",
        "items",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "nullable",
        "pattern",
        "properties",
        "required",
        "title",
        "type",
    }
)
_SILENT = frozenset({"$defs", "definitions"})  # nothing refers to them any more
_FORMATS = {"string": {"date-time", "enum"}, "number": {"float", "double"}, "integer": {"int32", "int64"}}
_MAX_SCHEMAS = 5_000
_WRITE_OUT = "write the levels that are needed out"


class _TooLarge(Exception):
    """Inlined, the schema would grow beyond reason."""


def gemini_schema(schema: Schema, notes: Notes) -> Schema:
    """The schema as Gemini takes it; what it can't say is refused in `notes`.

    Source: Gemini API, "Schema" (a select subset of an OpenAPI 3.0 schema object).
    """
    try:
        whole = _Inliner(schema, notes).inlined(schema)
    except _TooLarge:
        notes.refused(
            f"without references the schema has more than {_MAX_SCHEMAS:,} parts", "", fix="make it smaller"
        )
        return {}
    whole = without_combinators(whole, notes, fix="write its branches as one schema")
    return rewritten_at(whole, lambda part, pointer: _shaped(part, pointer, notes))


class _Inliner:
    """Puts in place of every reference what it leads to."""

    def __init__(self, whole: Schema, notes: Notes) -> None:
        self._definitions: Schema = {**whole.get("definitions", {}), **whole.get("$defs", {})}
        self._notes = notes
        self._schemas = 0

    def inlined(self, schema: Schema, open_names: tuple[str, ...] = (), pointer: str = "") -> Schema:
        """The schema without references; those inside `open_names` would never end."""
        plain = schema if pointer else {key: value for key, value in schema.items() if key not in _SILENT}
        return rewritten_at(plain, lambda part, at: self._target(part, open_names, at), pointer)

    def _target(self, part: Schema, open_names: tuple[str, ...], pointer: str) -> Schema:
        self._schemas += 1
        if self._schemas > _MAX_SCHEMAS:
            raise _TooLarge
        reference = part.get("$ref")
        if not isinstance(reference, str):
            return part
        name = reference.rpartition("/")[2].replace("~1", "/").replace("~0", "~")
        target = self._definitions.get(name)
        if reference == "#" or name in open_names:
            self._notes.refused("a schema that contains itself can't be told", pointer, fix=_WRITE_OUT)
            return {}
        self._notes.changed("$ref was replaced by what it leads to", pointer)
        beside = {key: value for key, value in part.items() if key != "$ref"}
        if not isinstance(target, dict):
            return beside
        return {**self.inlined(cast("Schema", target), (*open_names, name), pointer or "/"), **beside}


def _shaped(part: Schema, pointer: str, notes: Notes) -> Schema:
    part = _options(part, pointer, notes)
    part = _one_type(part, pointer, notes)
    left_out = [key for key in part if key not in _KNOWN]
    if "format" in part and part["format"] not in _FORMATS.get(str(part.get("type")), ()):
        left_out.append("format")
    for key in left_out:
        notes.changed(f"{key} was left out", pointer)
    part = {key: value for key, value in part.items() if key not in left_out}
    return _typed(part, pointer, notes)


def _options(part: Schema, pointer: str, notes: Notes) -> Schema:
    """`const` as an enum of one; an enum of other things than text as words, which is all that is left."""
    if "const" in part:
        notes.changed("const became an enum", pointer)
        value = part["const"]
        part = {**{key: kept for key, kept in part.items() if key != "const"}, "enum": [value]}
        part.setdefault("type", _type_of(value))
    values = part.get("enum")
    if not isinstance(values, list):
        return part
    listed = cast("list[Any]", values)
    texts = [one for one in listed if one is not None]
    if None in listed:
        notes.changed("null among values became nullable", pointer)
        part = {**part, "nullable": True}
    if all(isinstance(one, str) for one in texts):
        if "type" not in part:
            notes.changed("the type of the values was added", pointer)
        return {**part, "type": part.get("type", "string"), "enum": texts}
    notes.changed("enum was told in the description, as only text can be listed", pointer)
    said = f"Allowed values: {', '.join(json.dumps(one, ensure_ascii=False) for one in listed)}."
    described = f"{part['description']} {said}" if part.get("description") else said
    kinds = list(dict.fromkeys(_type_of(one) for one in texts))
    rest = {key: value for key, value in part.items() if key != "enum"}
    return {"type": kinds[0] if len(kinds) == 1 else kinds, **rest, "description": described}


def _one_type(part: Schema, pointer: str, notes: Notes) -> Schema:
    """`null` as `nullable`, and several types as `anyOf`."""
    kinds = part.get("type")
    if isinstance(kinds, list):
        named = [kind for kind in cast("list[str]", kinds) if kind != "null"]
        nullable: Schema = {"nullable": True} if len(named) < len(cast("list[str]", kinds)) else {}
        notes.changed("a list of types was written as one type, as nullable or as anyOf", pointer)
        rest = {key: value for key, value in part.items() if key != "type"}
        if len(named) == 1:
            part = {"type": named[0], **rest, **nullable}
        else:
            part = {"anyOf": [_bare(kind, rest) for kind in named], **_said(rest), **nullable}
    branches = part.get("anyOf")
    if isinstance(branches, list) and {"type": "null"} in branches:
        notes.changed("null among alternatives became nullable", pointer)
        kept = [one for one in cast("list[Any]", branches) if one != {"type": "null"}]
        rest = {key: value for key, value in part.items() if key != "anyOf"}
        part = {**kept[0], **rest} if len(kept) == 1 else {**rest, "anyOf": kept}
        part["nullable"] = True
    return part


def _bare(kind: str, rest: Schema) -> Schema:
    """One type of several, with the rules that are about it."""
    about = {"object": ("properties", "required"), "array": ("items", "minItems", "maxItems")}
    return {"type": kind, **{key: rest[key] for key in about.get(kind, ()) if key in rest}}


def _said(rest: Schema) -> Schema:
    return {key: rest[key] for key in ("title", "description", "default") if key in rest}


def _typed(part: Schema, pointer: str, notes: Notes) -> Schema:
    """With the type, and the items, that the provider demands."""
    if "type" not in part and "anyOf" not in part:
        if "properties" in part:
            part = {"type": "object", **part}
        else:
            notes.changed("a value of any type is shown as text", pointer)
            part = {"type": "string", **part}
    if part.get("type") == "array" and not part.get("items"):
        notes.changed("items of any type are shown as text", pointer)
        part = {**part, "items": {"type": "string"}}
    return part


def _type_of(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    names = {int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(cast("type[Any]", type(value)), "null")

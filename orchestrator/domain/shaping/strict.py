"""OpenAI's strict mode: every object closed, every property required, and few keywords."""

from __future__ import annotations

import re
from typing import Any, cast

from orchestrator.domain.shaping.merging import without_combinators
from orchestrator.domain.shaping.notes import Notes
from orchestrator.domain.shaping.subschemas import Schema, rewritten_at, subschemas

_LEFT_OUT = (
    "$comment",
    "$id",
    "$schema",
    "additionalItems",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "default",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "examples",
    "if",
    "maxContains",
    "maxProperties",
    "minContains",
    "minProperties",
    "not",
    "patternProperties",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
)
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_LOOK_AROUND = re.compile(r"\(\?<?[=!]")
_TYPED = frozenset({"type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const"})
_MAX_DEPTH = 10
_MAX_PROPERTIES = 5_000
_MAX_OPTIONS = 1_000
_PLAIN = "or use the plain form, without strict"


def strict_schema(schema: Schema, notes: Notes) -> Schema:
    """The schema as strict mode takes it; what it can't say is refused in `notes`.

    What was optional becomes a required property that may be null.

    Source: OpenAI's "Structured Outputs: supported schemas".
    """
    schema = without_combinators(schema, notes, fix=f"write its branches as one schema, {_PLAIN}")
    shaped = rewritten_at(schema, lambda part, pointer: _strict(part, pointer, notes))
    _hold_to_limits(shaped, notes)
    return shaped


def _strict(part: Schema, pointer: str, notes: Notes) -> Schema:
    part = _plain_keywords(part, pointer, notes)
    if _may_be(part, "object") or "properties" in part:
        part = _closed(part, pointer, notes)
    if _may_be(part, "array"):
        _check_items(part, pointer, notes)
    return part


def _plain_keywords(part: Schema, pointer: str, notes: Notes) -> Schema:
    left_out = {key for key in _LEFT_OUT if key in part}
    if "format" in part and part["format"] not in _FORMATS:
        left_out.add("format")
    if _LOOK_AROUND.search(str(part.get("pattern", ""))):
        left_out.add("pattern")
    for key in sorted(left_out):
        notes.changed(f"{key} was left out", pointer)
    return {key: value for key, value in part.items() if key not in left_out} if left_out else part


def _closed(part: Schema, pointer: str, notes: Notes) -> Schema:
    properties = cast("Schema", part.get("properties") or {})
    more = part.get("additionalProperties")
    if more not in (None, False, True) or (not properties and pointer and more is not False):
        notes.refused(
            "an object with keys of its caller's own has no strict form",
            pointer,
            fix=f"declare its properties and set additionalProperties to false, {_PLAIN}",
        )
        return part
    if more is not False:
        notes.changed("additionalProperties was set to false", pointer)
    required = set(cast("list[str]", part.get("required") or ()))
    shaped: Schema = {}
    for name, child in properties.items():
        place = f"{pointer}/properties/{name}"
        if not isinstance(child, dict) or not _TYPED & cast("Schema", child).keys():
            notes.refused("a property without a type has no strict form", place, fix=f"give it one, {_PLAIN}")
            shaped[name] = child
        elif name in required:
            shaped[name] = child
        else:
            notes.changed("an optional property became one that is required and may be null", place)
            shaped[name] = _nullable(cast("Schema", child))
    return {**part, "properties": shaped, "required": list(properties), "additionalProperties": False}


def _nullable(part: Schema) -> Schema:
    kinds = part.get("type")
    if isinstance(kinds, str | list) and "const" not in part:
        listed = [kinds] if isinstance(kinds, str) else cast("list[str]", kinds)
        wider: Schema = {**part, "type": listed if "null" in listed else [*listed, "null"]}
        options = cast("list[Any]", part.get("enum", []))
        return {**wider, "enum": [*options, None]} if options and None not in options else wider
    if "anyOf" in part:
        null = {"type": "null"}
        branches = cast("list[Any]", part["anyOf"])
        return part if null in branches else {**part, "anyOf": [*branches, null]}
    said = {key: part[key] for key in ("description", "title") if key in part}
    return {
        "anyOf": [{key: value for key, value in part.items() if key not in said}, {"type": "null"}],
        **said,
    }


def _check_items(part: Schema, pointer: str, notes: Notes) -> None:
    if "prefixItems" in part:
        notes.refused("a tuple has no strict form", pointer, fix=f"make it an object, {_PLAIN}")
        return
    items = part.get("items")
    if not isinstance(items, dict) or not _TYPED & cast("Schema", items).keys():
        notes.refused(
            "an array that does not say what it holds has no strict form",
            pointer,
            fix=f"give its items a type, {_PLAIN}",
        )


def _may_be(part: Schema, kind: str) -> bool:
    said = part.get("type")
    return said == kind or (isinstance(said, list) and kind in said)


def _hold_to_limits(schema: Schema, notes: Notes) -> None:
    parts = list(subschemas(schema))
    properties = sum(len(part["properties"]) for part in parts if isinstance(part.get("properties"), dict))
    options = sum(len(part["enum"]) for part in parts if isinstance(part.get("enum"), list))
    for count, most, what in (
        (properties, _MAX_PROPERTIES, "properties"),
        (options, _MAX_OPTIONS, "values in enums"),
        (_object_depth(schema), _MAX_DEPTH, "levels of objects"),
    ):
        if count > most:
            notes.refused(
                f"strict mode takes {most:,} {what}, not {count:,}", "", fix=f"have fewer, {_PLAIN}"
            )


def _object_depth(value: Any) -> int:
    """How deep objects stand in objects; references are not followed, as the provider does not."""
    if isinstance(value, list):
        return max((_object_depth(item) for item in cast("list[Any]", value)), default=0)
    if not isinstance(value, dict):
        return 0
    part = cast("Schema", value)
    inside = max((_object_depth(child) for child in part.values()), default=0)
    return inside + (1 if isinstance(part.get("properties"), dict) and _may_be(part, "object") else 0)

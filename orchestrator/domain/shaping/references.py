"""References that providers don't follow: their targets move into `$defs`."""

from __future__ import annotations

import re
from typing import Any, cast
from urllib.parse import unquote

from orchestrator.domain.shaping.subschemas import Schema, rewritten, subschemas

_FOLLOWED = re.compile(r"#(/(\$defs|definitions)/[^/]+)?")


# Each one is a copy: more would let a small schema grow without end.
_MAX_MOVED = 64


class TooManyReferences(Exception):
    """More references than a schema written by people or tools has."""


class Unresolved(Exception):
    """A reference leads nowhere inside the schema."""


def move_references(schema: Schema, changes: list[str]) -> Schema:
    """Let every `$ref` point to `#`, `#/$defs/NAME` or `#/definitions/NAME`.

    A target elsewhere is copied into `$defs`, where its own references are moved too; nothing is
    expanded, so recursive schemas stay recursive.

    Raises:
        Unresolved: a reference leads nowhere, or out of the schema.
        TooManyReferences: more than 64 targets would have to be copied.
    """
    targets: dict[str, Any] = {}
    moved: dict[str, str] = {}
    open_schemas = [schema]
    while open_schemas:
        for reference in _references(open_schemas.pop()):
            target = _target(schema, reference)
            if reference in moved or _FOLLOWED.fullmatch(reference):
                continue
            name = _free_name(schema, targets, reference)
            if len(moved) >= _MAX_MOVED:
                raise TooManyReferences(f"more than {_MAX_MOVED} references lead outside $defs")
            moved[reference] = f"#/$defs/{name}"
            targets[name] = target
            changes.append(f"$ref {reference} now points to a copy in $defs")
            if isinstance(target, dict):
                open_schemas.append(cast("Schema", target))
    if not moved:
        return schema
    whole = {**schema, "$defs": {**schema.get("$defs", {}), **targets}}
    return rewritten(whole, lambda part: _pointed_anew(part, moved))


def _references(schema: Schema) -> list[str]:
    found = [part["$ref"] for part in subschemas(schema) if isinstance(part.get("$ref"), str)]
    return list(dict.fromkeys(found))


def _pointed_anew(part: Schema, moved: dict[str, str]) -> Schema:
    reference = part.get("$ref")
    return {**part, "$ref": moved[reference]} if isinstance(reference, str) and reference in moved else part


def _target(schema: Schema, reference: str) -> Any:
    if not reference.startswith("#"):
        raise Unresolved(reference)
    fragment = unquote(reference[1:])
    if fragment and not fragment.startswith("/"):
        return _anchored(schema, fragment, reference)
    target: Any = schema
    for part in fragment.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(target, dict) and key in target:
            target = cast("Schema", target)[key]
        elif isinstance(target, list) and key.isdecimal() and int(key) < len(cast("list[Any]", target)):
            target = cast("list[Any]", target)[int(key)]
        else:
            raise Unresolved(reference)
    return target


def _anchored(schema: Schema, anchor: str, reference: str) -> Schema:
    for part in subschemas(schema):
        if part.get("$anchor") == anchor or part.get("$id") == f"#{anchor}":
            return {key: value for key, value in part.items() if key not in {"$anchor", "$id"}}
    raise Unresolved(reference)


def _free_name(schema: Schema, targets: dict[str, Any], reference: str) -> str:
    stem = re.sub(r"[^a-zA-Z0-9]+", "_", reference).strip("_") or "target"
    name, number = stem, 1
    while name in targets or name in schema.get("$defs", {}):
        number += 1
        name = f"{stem}_{number}"
    return name

"""`allOf` as one schema, where its branches do not contradict one another, and `oneOf` as `anyOf`."""

from __future__ import annotations

from typing import Any, cast

from orchestrator.domain.shaping.notes import Notes
from orchestrator.domain.shaping.subschemas import Schema, rewritten_at


class _Contradiction(Exception):
    """Two branches say different things under one keyword."""


def without_combinators(schema: Schema, notes: Notes, *, fix: str) -> Schema:
    """The schema with `anyOf` as its only combinator; an `allOf` that can't be one schema is refused."""

    def rewrite(part: Schema, pointer: str) -> Schema:
        if "allOf" in part:
            try:
                part = _merged(part)
                notes.changed("allOf was written as one schema", pointer)
            except _Contradiction:
                notes.refused("allOf can't be told", pointer, fix=fix)
        if "oneOf" in part:
            notes.changed("oneOf became anyOf", pointer)
            options = [*part.get("anyOf", ()), *part["oneOf"]]
            part = {**{key: value for key, value in part.items() if key != "oneOf"}, "anyOf": options}
        return part

    return rewritten_at(schema, rewrite)


def _merged(part: Schema) -> Schema:
    merged = {key: value for key, value in part.items() if key != "allOf"}
    for branch in part["allOf"]:
        if branch is True:
            continue
        if not isinstance(branch, dict):
            raise _Contradiction
        for key, value in cast("Schema", branch).items():
            merged[key] = _joined(key, merged[key], value) if key in merged else value
    return merged


def _joined(key: str, first: Any, second: Any) -> Any:
    if first == second or key in {"description", "title"}:
        return first
    if key == "properties" and isinstance(first, dict) and isinstance(second, dict):
        known, added = cast("Schema", first), cast("Schema", second)
        if any(known[name] != added[name] for name in known.keys() & added.keys()):
            raise _Contradiction
        return {**known, **added}
    if key == "required" and isinstance(first, list) and isinstance(second, list):
        return list(dict.fromkeys([*cast("list[Any]", first), *cast("list[Any]", second)]))
    raise _Contradiction

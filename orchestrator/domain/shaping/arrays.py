"""Arrays in the form that providers take."""

from __future__ import annotations

from typing import Any, cast

from orchestrator.domain.shaping.subschemas import Schema, rewritten


def modern_arrays(schema: Schema, changes: list[str], *, need_items: bool) -> Schema:
    """Write draft-07 tuples as `prefixItems`, and add `items` where a provider demands it."""

    def rewrite(part: Schema) -> Schema:
        if isinstance(part.get("items"), list):
            changes.append("a list in items became prefixItems")
            part = _with_prefix_items(part)
        if need_items and _is_array(part.get("type")) and "items" not in part:
            changes.append("items was added to an array")
            part = {**part, "items": {}}
        return part

    copy = rewritten(schema, rewrite)
    return copy if changes else schema


def _with_prefix_items(part: Schema) -> Schema:
    copy = {key: value for key, value in part.items() if key not in {"items", "additionalItems"}}
    copy["prefixItems"] = part["items"]
    if "additionalItems" in part:
        copy["items"] = part["additionalItems"]
    return copy


def _is_array(kind: Any) -> bool:
    return kind == "array" or (isinstance(kind, list) and "array" in cast("list[Any]", kind))

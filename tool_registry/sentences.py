"""What a schema's rule asks for, in a sentence that quotes no value."""

from __future__ import annotations

import json
from typing import Any, cast

from tool_registry.arguments import strict_json
from tool_registry.near_names import closest

MAX_OPTIONS = 20
_MAX_QUOTED_CHARS = 10_000


def sentence(rule: str, value: Any, instance: Any) -> tuple[str, str | None]:
    """What a rule asks for, without quoting the value that broke it."""
    if rule == "type":
        return _type_sentence(types(value), instance), types(value)
    if rule in {"enum", "const"}:
        return _enum_sentence(cast("list[Any]", value) if rule == "enum" else [value], instance)
    bound = _bound_sentence(rule, value)
    if bound is not None:
        return bound, f"{rule} {value}"
    if rule == "pattern":
        return f"must match the pattern {str(value)[:200]}", str(value)[:200]
    if rule == "format":
        return f"must be a valid {value}", str(value)
    if rule == "dependentRequired":
        return f"needs other properties beside some that it has: {json.dumps(value)[:200]}", None
    return _PLAIN.get(rule, f"breaks the rule {rule!r}"), None


_PLAIN = {
    "additionalItems": "has more items than are allowed",
    "additionalProperties": "holds properties that are not allowed",
    "contains": "does not hold the item that it must, or too few or too many of it",
    "false": "is not allowed here",
    "not": "must not have this form",
    "oneOf": "fits more than one of the allowed forms; leave out what makes it fit the others",
    "unevaluatedItems": "has more items than are allowed",
    "unevaluatedProperties": "holds properties that are not allowed",
    "uniqueItems": "must not hold the same item twice",
}


def _type_sentence(wanted: str, instance: Any) -> str:
    sentence = f"must be {wanted}, not {_json_type(instance)}"
    if not isinstance(instance, str) or len(instance) > _MAX_QUOTED_CHARS:
        return sentence
    try:
        kind = _json_type(strict_json(instance))
    except ValueError:
        return sentence
    kinds = {kind, "number"} if kind == "integer" else {kind}
    return (
        f"{sentence}; send the value itself, without quotes"
        if kinds & set(wanted.split(" or "))
        else sentence
    )


def _json_type(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(cast("type[Any]", type(value)), "something else")


def _enum_sentence(values: list[Any], instance: Any) -> tuple[str, str]:
    options = ", ".join(json.dumps(one, ensure_ascii=False)[:60] for one in values[:MAX_OPTIONS])
    if len(values) > MAX_OPTIONS:
        options += f" and {len(values) - MAX_OPTIONS} more"
    sentence = f"must be one of {options}" if len(values) > 1 else f"must be {options}"
    names = [one for one in values if isinstance(one, str)]
    near = closest(instance, names) if isinstance(instance, str) and len(instance) < 100 else None
    return (f"{sentence}; did you mean {near!r}?" if near and len(values) > 1 else sentence), options


_BOUNDS = {
    "minimum": "must be {} or more",
    "maximum": "must be {} or less",
    "exclusiveMinimum": "must be more than {}",
    "exclusiveMaximum": "must be less than {}",
    "multipleOf": "must be a multiple of {}",
    "minLength": "must have {} or more characters",
    "maxLength": "must have {} or fewer characters",
    "minItems": "must have {} or more items",
    "maxItems": "must have {} or fewer items",
    "minProperties": "must have {} or more properties",
    "maxProperties": "must have {} or fewer properties",
}


def _bound_sentence(rule: str, value: Any) -> str | None:
    template = _BOUNDS.get(rule)
    return template.format(value) if template else None


def types(value: Any) -> str:
    """The value of a `type` rule, in words."""
    return " or ".join(cast("list[str]", value)) if isinstance(value, list) else str(value)

"""`nullable: true`, which OpenAPI has and JSON Schema has not, as the null type that it means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

_ONE = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_MANY = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_NAMED = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)


def with_nulls(schema: Any) -> Any:
    """A copy in which every subschema that says `nullable: true` allows null.

    Values that are no schemas (`enum`, `const`, `default`, properties *named* nullable) stay as they are.
    """
    if not isinstance(schema, dict):
        return schema
    rules = {key: _inside(key, value) for key, value in cast("dict[str, Any]", schema).items()}
    return _allowing_null(rules) if rules.get("nullable") is True else rules


def _inside(key: str, value: Any) -> Any:
    if key in _NAMED and isinstance(value, dict):
        return {name: with_nulls(one) for name, one in cast("dict[str, Any]", value).items()}
    if key in _MANY and isinstance(value, list):
        return [with_nulls(one) for one in cast("list[Any]", value)]
    return with_nulls(value) if key in _ONE else value


def _allowing_null(rules: Mapping[str, Any]) -> dict[str, Any]:
    kind = rules.get("type")
    if isinstance(kind, str):
        kind = [kind]
    if not isinstance(kind, list):
        return dict(rules)  # OpenAPI: without a type, `nullable` says nothing
    kinds = cast("list[Any]", kind)
    allowing = {**rules, "type": kinds if "null" in kinds else [*kinds, "null"]}
    values = rules.get("enum")
    if isinstance(values, list) and None not in values:
        allowing["enum"] = [*cast("list[Any]", values), None]
    return allowing

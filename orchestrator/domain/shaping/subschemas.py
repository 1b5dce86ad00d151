"""Walking a JSON Schema: where schemas lie in a schema, and where only data or names do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

Schema = dict[str, Any]

# A schema that the registry takes is at most 64 deep; this also holds for what never went through it.
MAX_DEPTH = 128

_SCHEMAS_BY_NAME = (
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
    "dependencies",
)
_SCHEMA_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_SINGLE_SCHEMAS = (
    "items",
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
)


class TooDeep(Exception):
    """A schema is nested deeper than any that a model could use."""


def subschemas(schema: Schema, depth: int = 0) -> Iterator[Schema]:
    """The schema and all schemas inside it, the outer ones first.

    Raises:
        TooDeep: it is nested deeper than 128.
    """
    if depth > MAX_DEPTH:
        raise TooDeep(f"the schema is nested more than {MAX_DEPTH} deep")
    yield schema
    for child in _children(schema):
        yield from subschemas(child, depth + 1)


def rewritten(schema: Schema, rewrite: Callable[[Schema], Schema]) -> Schema:
    """A copy in which `rewrite` was applied to every schema, the inner ones first."""
    return rewritten_at(schema, lambda part, _pointer: rewrite(part))


def rewritten_at(schema: Schema, rewrite: Callable[[Schema, str], Schema], pointer: str = "") -> Schema:
    """The same; `rewrite` is also told where the schema stands, as a JSON pointer."""

    def visit(value: Any, *path: object) -> Any:
        if not isinstance(value, dict):
            return value
        here = pointer + "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)
        return rewritten_at(cast("Schema", value), rewrite, here)

    copy: Schema = {}
    for key, value in schema.items():
        if key in _SCHEMAS_BY_NAME and isinstance(value, dict):
            copy[key] = {name: visit(child, key, name) for name, child in cast("Schema", value).items()}
        elif key in _SCHEMA_LISTS and isinstance(value, list):
            copy[key] = [visit(child, key, place) for place, child in enumerate(cast("list[Any]", value))]
        elif key in _SINGLE_SCHEMAS:
            copy[key] = visit(value, key)
        else:
            copy[key] = value
    return rewrite(copy, pointer)


def _children(schema: Schema) -> Iterator[Schema]:
    for key, value in schema.items():
        if key in _SCHEMAS_BY_NAME and isinstance(value, dict):
            yield from _objects(cast("Schema", value).values())
        elif key in _SCHEMA_LISTS and isinstance(value, list):
            yield from _objects(cast("list[Any]", value))
        elif key in _SINGLE_SCHEMAS:
            yield from _objects([value])


def _objects(values: Any) -> Iterator[Schema]:
    for value in values:
        if isinstance(value, dict):
            yield cast("Schema", value)

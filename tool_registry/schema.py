"""JSON Schemas, checked at registration and compiled for the calls.

`jsonschema`, the reference, checks a schema; the compiled `jsonschema-rs` decides every call. Nothing is
ever fetched: both resolve references within the schema and the bundled metaschemas only.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any, cast

import jsonschema
import jsonschema.exceptions
import jsonschema.validators
import jsonschema_rs

from tool_registry.errors import InvalidSchema, Violation
from tool_registry.explain import MAX_VIOLATIONS, pointer_of

MAX_SCHEMA_BYTES = 256 * 1024
MAX_SCHEMA_DEPTH = 64
MAX_SCHEMA_NODES = 10_000
_BACKTRACK_LIMIT = 100_000
_MASK = "the value"

_UNKNOWN_DRAFT: Any = object()  # stands for "no draft of that name"
_Compiled = Any  # the five draft classes of jsonschema_rs share no base class


def is_placeholder(schema: Any) -> bool:
    """Whether a schema says nothing: absent, null, "", `{}`, or an open object without properties.

    A tool whose owner should have said more is not advertised with one.
    """
    if schema in (None, "", "null") or not isinstance(schema, Mapping):
        return True
    rules = {
        key for key, value in cast("Mapping[str, Any]", schema).items() if value not in ({}, [], None, True)
    }
    return (
        not (rules - {"type", "title", "description", "$schema", "$id"})
        and "additionalProperties" not in rules
    )


class CompiledSchema:
    """A schema that calls are held to.

    Attributes:
        text: the schema as the owner gave it, serialised once.
    """

    def __init__(self, text: str) -> None:
        """Check and compile.

        Raises:
            InvalidSchema: the message says what is wrong with it.
        """
        self.text = text
        schema = _bounded(text)
        _check(schema)
        self._validator = _compile(schema)
        self._schema = schema
        properties = schema.get("properties")
        self._properties = cast("dict[str, Any]", properties) if isinstance(properties, dict) else {}
        self._required = frozenset(cast("list[str]", schema.get("required", ())))

    @property
    def schema(self) -> Mapping[str, Any]:
        """The schema; read only."""
        return self._schema

    def accepts(self, params: Mapping[str, Any]) -> bool:
        """The verdict. Formats are asserted."""
        try:
            return bool(self._validator.is_valid(self._without_nullable(params)))
        except (UnicodeEncodeError, ValueError):
            return False  # half a surrogate pair, or a number the engine can't hold

    def masked_violations(self, params: Mapping[str, Any]) -> tuple[Violation, ...]:
        """The deciding engine's own words, without values; for when the reference finds nothing."""
        try:
            errors = [_masked(error) for error in self._validator.iter_errors(self._without_nullable(params))]
        except (UnicodeEncodeError, ValueError):
            errors = [Violation("", "json", "holds text or a number that JSON can't carry")]
        return tuple(errors[:MAX_VIOLATIONS])

    def without_refused_nulls(self, params: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Drop top-level nulls that mean "not given": the property is optional and refuses null.

        Returns:
            The params (the same object when nothing was dropped) and the dropped JSON pointers.
        """
        if None not in params.values():
            return params, ()
        dropped = tuple(
            name
            for name, value in params.items()
            if value is None and name not in self._required and _refuses_null(self._properties.get(name))
        )
        kept = {name: value for name, value in params.items() if name not in dropped}
        return (kept if dropped else params), tuple(pointer_of([name]) for name in dropped)

    def _without_nullable(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """`nullable: true` is no rule of JSON Schema; a null it allows is not shown to the engine."""
        if None not in params.values():
            return params
        return {
            name: value
            for name, value in params.items()
            if value is not None or not _nullable(self._properties.get(name))
        }


def _masked(error: Any) -> Violation:
    rule = str(error.kind.name)
    message = f"must be a valid {error.kind.format}" if rule == "format" else str(error.message)[:300]
    return Violation(pointer_of(error.instance_path), rule, message)


def _nullable(schema: Any) -> bool:
    return isinstance(schema, dict) and cast("dict[str, Any]", schema).get("nullable") is True


def _refuses_null(schema: Any) -> bool:
    """True when a property's schema states a type or a set of values, and null is not among them."""
    if not isinstance(schema, dict) or _nullable(schema):
        return False
    rules = cast("dict[str, Any]", schema)
    kind = rules.get("type")
    if kind is not None:
        return kind != "null" and "null" not in kind
    values = rules.get("enum")
    if values is not None:
        return None not in values
    return "const" in rules and rules["const"] is not None


def _bounded(text: str) -> dict[str, Any]:
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_SCHEMA_BYTES:
        raise InvalidSchema(f"the schema has {size:,} bytes; at most {MAX_SCHEMA_BYTES:,} are allowed")
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidSchema(f"the schema is not JSON: {error}") from None
    if not isinstance(schema, dict):
        raise InvalidSchema("the schema must be a JSON object that describes the arguments object")
    _count(cast("dict[str, Any]", schema))
    return cast("dict[str, Any]", schema)


def _count(schema: dict[str, Any]) -> None:
    nodes = 0
    level: list[Any] = [schema]
    for _ in range(MAX_SCHEMA_DEPTH + 1):
        nodes += len(level)
        if nodes > MAX_SCHEMA_NODES:
            raise InvalidSchema(f"the schema has more than {MAX_SCHEMA_NODES:,} values")
        level = [child for value in level for child in _children(value)]
        if not level:
            return
    raise InvalidSchema(f"the schema is more than {MAX_SCHEMA_DEPTH} levels deep")


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(cast("dict[str, Any]", value).values())
    return list(cast("list[Any]", value)) if isinstance(value, list) else []


def _check(schema: dict[str, Any]) -> None:
    kind = schema.get("type", "object")
    if kind != "object" and (not isinstance(kind, list) or "object" not in kind):
        raise InvalidSchema(f"the root of the schema must describe an object, not {kind!r}")
    reference = jsonschema.validators.validator_for(schema, default=_UNKNOWN_DRAFT)
    if reference is _UNKNOWN_DRAFT:
        if "$schema" in schema:
            raise InvalidSchema(
                f"$schema {str(schema['$schema'])[:200]!r} is not known;"
                " use draft 2020-12 or draft-07, or leave it out"
            )
        reference = jsonschema.Draft202012Validator
    try:
        # Regular expressions are the deciding engine's business: Python's dialect refuses legal ones.
        reference.check_schema(schema, format_checker=jsonschema.FormatChecker(formats=()))  # pyright: ignore[reportCallIssue] - the stubs lack it
    except jsonschema.exceptions.SchemaError as error:
        where = pointer_of(error.absolute_path) or "the root"
        raise InvalidSchema(f"not a valid JSON Schema: at {where}: {error.message[:300]}") from None


def _compile(schema: dict[str, Any]) -> _Compiled:
    make = functools.partial(
        jsonschema_rs.validator_for, schema, validate_formats=True, offline=True, mask=_MASK
    )
    try:
        return make(pattern_options=jsonschema_rs.RegexOptions())
    except (ValueError, jsonschema_rs.ReferencingError):
        pass  # look-around and back-references need the other engine, under a limit; all else fails there too
    try:
        return make(pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACK_LIMIT))
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        reason = str(error).partition("\n")[0][:300]
        if "Retrieval is disabled" in reason:
            reason = (
                f"a reference leaves the schema, and none is ever fetched: {reason.partition(' is not')[0]}"
            )
        raise InvalidSchema(f"the schema can't be used: {reason}") from None

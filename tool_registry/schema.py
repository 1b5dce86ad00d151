"""JSON Schemas, checked at registration and compiled for the calls.

The compiled `jsonschema-rs` checks a schema and decides every call; `jsonschema`, the reference, has the
words for what is wrong. Nothing is ever fetched: both resolve references within the schema and the bundled
metaschemas only.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, cast

import jsonschema
import jsonschema.exceptions
import jsonschema_rs

from tool_registry.arguments import strict_json
from tool_registry.definition import schema_text
from tool_registry.errors import InvalidSchema, Violation
from tool_registry.explain import MAX_VIOLATIONS, bounded_pointer, is_within, pointer_of
from tool_registry.nullable import with_nulls
from tool_registry.schema_graph import Branching, TooManyLooks, measured

MAX_SCHEMA_BYTES = 256 * 1024
MAX_SCHEMA_DEPTH = 64
MAX_SCHEMA_NODES = 10_000
_BACKTRACK_LIMIT = 50_000
_MAX_BACKTRACKED = 1_000
_TOO_MANY_FOR_PATTERNS = (
    f"holds more than {_MAX_BACKTRACKED:,} values, which is too many for this schema's look-around patterns"
    " and back-references; send less at once"
)
_MASK = "the value"
_SLOW_CHECK_NODES = 1_000
_MAX_VALUES = 2_000
_MAX_LEVELS = 64
_MAX_LISTED = 20_000
_FLAT = Branching(1, recursive=False)
DECIDED_RULES = frozenset({"format", "falseSchema"})
"""Rules that only the deciding engine checks, or places."""

_Reference = Any  # the classes of jsonschema share no base class
_DRAFTS: Mapping[str, _Reference] = {
    cast("str", draft.META_SCHEMA.get("$schema")).rstrip("#"): draft
    for draft in (
        jsonschema.Draft4Validator,
        jsonschema.Draft6Validator,
        jsonschema.Draft7Validator,
        jsonschema.Draft201909Validator,
        jsonschema.Draft202012Validator,
    )
}
_Compiled = Any  # the five draft classes of jsonschema_rs share no base class


def is_placeholder(schema: Any) -> bool:
    """Whether a schema says nothing: absent, null, "", `{}`, or an open object without properties.

    A tool whose owner should have said more is not advertised with one.
    """
    if schema in (None, "", "null") or not isinstance(schema, Mapping):
        return True
    rules = {
        key
        for key, value in cast("Mapping[str, Any]", schema).items()
        if value is not True and value not in ({}, [], None)
    }
    return not (
        rules - {"type", "title", "description", "$schema", "$id", "$comment", "$defs", "definitions"}
    )


class CompiledSchema:
    """A schema that calls are held to.

    Attributes:
        text: the schema as the owner gave it, serialised once.
        rules: the same as an object, where `nullable: true` stands as the null type that it means; calls
            are held to this. Read only.
        rules_text: `rules`, serialised.
    """

    def __init__(self, text: str) -> None:
        """Check and compile.

        Raises:
            InvalidSchema: the message says what is wrong with it.
        """
        self.text = text
        schema, nodes = _bounded(text)
        _check_root(schema)
        _check(schema, nodes)
        self._branching = _branching(schema) if '"$' in text else _FLAT
        self.rules: Mapping[str, Any] = schema
        self.rules_text = text
        self._validator, self._backtracks = _compiled(schema)
        if '"nullable"' in text:
            self.rules = with_nulls(schema)
            self.rules_text = schema_text(self.rules)
            self._validator, _ = _compiled(self.rules)

    def quick_to_explain(self, params: Mapping[str, Any]) -> bool:
        """Whether every error can be listed at once.

        The verdict is always quick. A list of errors is not where a schema contains itself: each level of
        the arguments multiplies its alternatives again (measured: 30 s for two of them and 18 levels).
        """
        if not self._branching.recursive or self._branching.looks == 1:
            return True
        deepest = next(
            depth for depth in range(_MAX_LEVELS) if self._branching.looks_at(depth + 1) > _MAX_LISTED
        )
        return is_within(params, max_values=_MAX_VALUES, max_depth=deepest)

    def accepts(self, params: Mapping[str, Any]) -> bool:
        """The verdict. Formats are asserted."""
        if self._backtracks and not is_within(params, max_values=_MAX_BACKTRACKED):
            return False
        try:
            return bool(self._validator.is_valid(params))
        except ValueError:
            return False  # half a surrogate pair, or a number the engine can't hold

    def masked_violations(self, params: Mapping[str, Any]) -> tuple[Violation, ...]:
        """The deciding engine's own words, without values; for when the reference finds nothing."""
        if self._backtracks and not is_within(params, max_values=_MAX_BACKTRACKED):
            return (Violation("", "pattern", _TOO_MANY_FOR_PATTERNS),)
        if not self.quick_to_explain(params):
            return (Violation("", "schema", "does not fit the schema somewhere deep inside"),)
        try:
            return tuple(_masked(error) for error in self.errors(params)[:MAX_VIOLATIONS])
        except ValueError:
            return (Violation("", "json", "holds text or a number that JSON can't carry"),)

    def without_refused_nulls(self, params: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Drop top-level nulls that mean "not given": the property's schema refuses null.

        A required property is then missed by its name.

        Returns:
            The params (the same object when nothing was dropped) and the dropped JSON pointers.
        """
        if None not in params.values() or self.accepts(params):
            return params, ()
        nulls = {name: None for name, value in params.items() if value is None}
        large = not is_within(params, max_values=_MAX_VALUES) or not self.quick_to_explain(params)
        try:
            paths = [error.instance_path for error in self.errors(nulls if large else params)]
        except ValueError:
            return params, ()  # what can't be read fits no schema, with its nulls or without
        refused = {path[0] for path in paths if len(path) == 1}
        dropped = [name for name, value in params.items() if value is None and name in refused]
        kept = {name: value for name, value in params.items() if name not in dropped}
        return (kept if dropped else params), tuple(pointer_of([name]) for name in dropped)

    def errors(self, params: Mapping[str, Any]) -> list[Any]:
        """The deciding engine's errors; of large params the first one, since it makes all of them at once."""
        if is_within(params, max_values=_MAX_VALUES):
            return list(self._validator.iter_errors(params))
        try:
            self._validator.validate(params)
        except jsonschema_rs.ValidationError as first:
            return [first]
        return []


def _masked(error: Any) -> Violation:
    rule = str(error.kind.name)
    message = str(error.message)[:300]
    if rule == "format":
        message = f"must be a valid {error.kind.format}"
    elif rule == "falseSchema":
        message = "is not allowed here"
    return Violation(bounded_pointer(error.instance_path), rule, message)


def _bounded(text: str) -> tuple[dict[str, Any], int]:
    """The schema and how many values it holds."""
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_SCHEMA_BYTES:
        raise InvalidSchema(f"the schema has {size:,} bytes; at most {MAX_SCHEMA_BYTES:,} are allowed")
    try:
        schema = strict_json(text)
    except ValueError as error:
        raise InvalidSchema(f"the schema is not JSON: {error}") from None
    if not isinstance(schema, dict):
        raise InvalidSchema("the schema must be a JSON object that describes the arguments object")
    return cast("dict[str, Any]", schema), _count(cast("dict[str, Any]", schema))


def _count(schema: dict[str, Any]) -> int:
    nodes = 0
    level: list[Any] = [schema]
    for _ in range(MAX_SCHEMA_DEPTH + 1):
        nodes += len(level)
        if nodes > MAX_SCHEMA_NODES:
            raise InvalidSchema(f"the schema has more than {MAX_SCHEMA_NODES:,} values")
        level = [child for value in level for child in _children(value)]
        if not level:
            return nodes
    raise InvalidSchema(f"the schema is more than {MAX_SCHEMA_DEPTH} levels deep")


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(cast("dict[str, Any]", value).values())
    return list(cast("list[Any]", value)) if isinstance(value, list) else []


def _check_root(schema: dict[str, Any]) -> None:
    kind = schema.get("type", "object")
    if kind != "object" and (not isinstance(kind, list) or "object" not in kind):
        named = str(cast("object", kind))[:200]
        raise InvalidSchema(f"the root of the schema must describe an object, not {named!r}")


def _check(schema: dict[str, Any], nodes: int) -> None:
    """Hold a schema to its metaschema.

    The deciding engine does it in microseconds. What it refuses the reference looks at again, and says what
    is wrong; it takes 2 ms for a usual schema and seconds for a very large one (measured: 2.6 s for 9,800
    values), which the compiler's own words have to do for.
    """
    named = schema.get("$schema", jsonschema.Draft202012Validator.META_SCHEMA["$schema"])
    reference = _DRAFTS.get(named.rstrip("#")) if isinstance(named, str) else None
    if reference is None:
        raise InvalidSchema(
            f"$schema {str(named)[:200]!r} is not known; use draft 2020-12 or draft-07, or leave it out"
        )
    if nodes > _SLOW_CHECK_NODES or _surely_valid(schema):
        return
    try:
        # Regular expressions are the deciding engine's business: Python's dialect refuses legal ones.
        reference.check_schema(schema, format_checker=jsonschema.FormatChecker(formats=()))
    except jsonschema.exceptions.SchemaError as error:
        where = bounded_pointer(error.absolute_path) or "the root"
        raise InvalidSchema(f"not a valid JSON Schema: at {where}: {error.message[:300]}") from None


def _surely_valid(schema: dict[str, Any]) -> bool:
    try:
        return jsonschema_rs.meta.is_valid(schema)
    except (ValueError, jsonschema_rs.ReferencingError):
        return False  # a part names a draft that nobody knows


def _branching(schema: dict[str, Any]) -> Branching:
    try:
        return measured(schema)
    except TooManyLooks as bound:
        raise InvalidSchema(
            f"the schema can't be checked in good time: {bound}; write it with fewer"
        ) from None


def compile_validator(schema: Any) -> _Compiled:
    """The deciding engine's validator for any schema, boolean ones and those of other roots too.

    Raises:
        InvalidSchema: the engine can't take it, a reference leaves it, or its alternatives multiply.
    """
    return _compiled(schema)[0]


def _compiled(schema: Any) -> tuple[_Compiled, bool]:
    """The validator, and whether some pattern of it backtracks: each may take 0.6 ms then (measured)."""
    if isinstance(schema, dict):
        _branching(cast("dict[str, Any]", schema))
    make = functools.partial(
        jsonschema_rs.validator_for, schema, validate_formats=True, offline=True, mask=_MASK
    )
    try:
        return make(pattern_options=jsonschema_rs.RegexOptions()), False
    except (ValueError, jsonschema_rs.ReferencingError):
        pass  # look-around and back-references need the other engine, under a limit; all else fails there too
    try:
        return make(pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACK_LIMIT)), True
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        reason = str(error).partition("\n")[0][:300]
        if "etriev" in reason:
            reason = (
                f"a reference leaves the schema, and none is ever fetched: {reason.partition(' is not')[0]}"
            )
        raise InvalidSchema(f"the schema can't be used: {reason}") from None

"""Why arguments do not fit a schema, in words a model can act on.

The reference engine finds the violations; the sentences are built from pointer and rule, never from the
engine's own messages, which quote values. It can be slow on hostile schemas, so it runs in the event loop
only where `cheap` says so; elsewhere behind the `Explainer` port, in a process that can be killed:
`python -m tool_registry.explain` reads `{"schema": ..., "instance": ...}` and writes the violations.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import islice
from typing import Any, Protocol, cast

import jsonschema
import jsonschema.exceptions
import jsonschema.validators
import jsonschema_specifications
import referencing.exceptions

from tool_registry.arguments import MAX_DEPTH
from tool_registry.errors import Violation
from tool_registry.near_names import closest
from tool_registry.sentences import MAX_OPTIONS, sentence, types

MAX_VIOLATIONS = 20
_MAX_SHOWN_CHARS = 60
_SLOW_RULES = ('"pattern"', '"patternProperties"', '"uniqueItems"')
_CHEAP_VALUES = 1_000
_CHEAP_SCHEMA_CHARS = 65_536
_CHEAP_DEPTH = 8
_REFERENCES = ('"$ref"', '"$dynamicRef"', '"$recursiveRef"')
_MAX_NAME_CHARS = 100
_MAX_POINTER_CHARS = 300
_MAX_MESSAGE_CHARS = 600
_MAX_EXPECTED_CHARS = 300

_Error = jsonschema.exceptions.ValidationError


class Explainer(Protocol):
    """Runs `violations` where it can be stopped."""

    async def explain(self, schema_json: str, instance_json: str) -> tuple[Violation, ...] | None:
        """The violations, or None when they could not be had in time."""
        ...


def cheap(schema_json: str, instance: Any) -> bool:
    """Whether the reference engine may run in the event loop on these.

    Its time grows with the number of values on both sides, multiplied. References make it exponential in
    the depth of the instance, since a schema may refer to itself from two branches.
    """
    if len(schema_json) > _CHEAP_SCHEMA_CHARS or any(rule in schema_json for rule in _SLOW_RULES):
        return False
    refers = any(rule in schema_json for rule in _REFERENCES)
    return is_within(instance, max_values=_CHEAP_VALUES, max_depth=_CHEAP_DEPTH if refers else MAX_DEPTH)


def is_within(instance: Any, *, max_values: int, max_depth: int = MAX_DEPTH) -> bool:
    """Whether a JSON value holds no more values, and no more levels of them, than these."""
    values, level = 0, [instance]
    for _ in range(max_depth):
        values += len(level)
        if values > max_values:
            return False
        level = [child for value in level for child in _children(value)]
        if not level:
            return True
    return False


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).values()
    return cast("list[Any]", value) if isinstance(value, list) else ()


def violations(schema: Mapping[str, Any], instance: Any) -> tuple[Violation, ...]:
    """Every way in which `instance` breaks `schema`, at most 20, in document order.

    References are resolved within the schema and the bundled metaschemas only; nothing is fetched.
    Empty when the reference engine finds nothing, or can't go on.
    """
    validator_class = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    validator = validator_class(dict(schema), registry=jsonschema_specifications.REGISTRY)
    try:
        # Where a property's schema is `false` the reference does not say which; the deciding engine does.
        told = (error for error in validator.iter_errors(instance) if error.validator)
        errors = list(islice(told, MAX_VIOLATIONS))
        found = [violation for error in errors for violation in _describe(error)]
    except (RecursionError, ArithmeticError, re.error, referencing.exceptions.Unresolvable):
        return ()  # the deciding engine's own, masked words are shown instead
    unique = {(one.pointer, one.rule, one.message): one for one in found}
    return tuple(_bounded(one) for one in islice(unique.values(), MAX_VIOLATIONS))


def without_sensitive(found: Iterable[Violation], sensitive: Iterable[str]) -> tuple[Violation, ...]:
    """The same violations; what came at or below a sensitive pointer is not shown."""
    hidden = tuple(sensitive)
    return tuple(
        replace(one, got=None) if any(_covers(pointer, one.pointer) for pointer in hidden) else one
        for one in found
    )


def _covers(pointer: str, at: str) -> bool:
    return at == pointer or at.startswith(f"{pointer}/") or pointer.startswith(f"{at}/")


def _bounded(one: Violation) -> Violation:
    expected = one.expected[:_MAX_EXPECTED_CHARS] if one.expected else one.expected
    return replace(one, message=one.message[:_MAX_MESSAGE_CHARS], expected=expected)


def pointer_of(path: Iterable[str | int]) -> str:
    """A JSON pointer of path segments."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def bounded_pointer(path: Iterable[str | int]) -> str:
    """The same, cut where a name in it is absurdly long."""
    pointer = pointer_of(path)
    return pointer if len(pointer) <= _MAX_POINTER_CHARS else f"{pointer[:_MAX_POINTER_CHARS]}..."


def shown(value: Any) -> str:
    """A value by type and size; the value itself only when it is short."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"number {value}" if abs(value) < 10**15 else f"number {_magnitude(value)}"
    if isinstance(value, str):
        if len(value) <= _MAX_SHOWN_CHARS:
            return f"string {json.dumps(value, ensure_ascii=False)}"
        return f"string of {len(value):,} characters"
    if isinstance(value, list):
        return f"array of {len(cast('list[Any]', value)):,} items"
    keys = [str(key)[:30] for key in islice(cast("dict[str, Any]", value), 5)]
    return f"object with keys {', '.join(keys)}" if keys else "empty object"


def _magnitude(value: float) -> str:
    try:
        return f"{value:.3e}"
    except OverflowError:
        return "of more than 300 digits"


def _describe(error: _Error) -> list[Violation]:
    rule = str(error.validator or "false")
    pointer = bounded_pointer(error.absolute_path)
    if rule in {"additionalProperties", "unevaluatedProperties"}:
        unknown = _unknown_properties(error)
        if unknown:
            return unknown
    if rule in {"anyOf", "oneOf"} and error.context:
        return [_best_branch(error, pointer)]
    message, expected = sentence(rule, error.validator_value, error.instance)
    if rule == "required":
        message = f"{_missing(error)[:_MAX_NAME_CHARS]!r} is required"
    if "propertyNames" in error.absolute_schema_path:
        return [Violation(pointer, rule, f"the property name {_short(error.instance)} {message}", expected)]
    return [Violation(pointer, rule, message, expected, shown(error.instance))]


def _short(name: Any) -> str:
    return repr(str(name)[:_MAX_NAME_CHARS])


def _missing(error: _Error) -> str:
    names = cast("list[str]", error.validator_value)
    found = cast("dict[str, Any]", error.instance)
    # One error a missing name, each naming it first in the engine's message; the name is ours to take.
    return next(
        (name for name in names if name not in found and error.message.startswith(repr(name))), names[0]
    )


def _unknown_properties(error: _Error) -> list[Violation]:
    schema = cast("dict[str, Any]", error.schema)
    known = cast("dict[str, Any]", schema.get("properties", {}))
    patterns = [re.compile(one) for one in cast("dict[str, Any]", schema.get("patternProperties", {}))]
    if not known and not patterns and str(error.validator) != "additionalProperties":
        return []
    instance = cast("dict[str, Any]", error.instance)
    allowed = ", ".join(name[:_MAX_SHOWN_CHARS] for name in islice(known, MAX_OPTIONS)) or "no properties"
    unknown = (key for key in instance if key not in known and not any(one.search(key) for one in patterns))
    found: list[Violation] = []
    for name in islice(unknown, MAX_VIOLATIONS):
        near = closest(name, known)
        hint = f"; did you mean {near!r}?" if near else ""
        found.append(
            Violation(
                bounded_pointer([*error.absolute_path, name]),
                str(error.validator),
                f"unknown property {_short(name)}{hint}",
                f"one of: {allowed}",
                shown(instance[name]),
            )
        )
    return found


def _best_branch(error: _Error, pointer: str) -> Violation:
    """One violation for a failed `anyOf`/`oneOf`: what the form that fits best still lacks."""
    branches: dict[int, list[_Error]] = {}
    for sub in error.context or ():
        if not sub.schema_path:
            continue  # a branch that is `false`; the reference does not say which
        branches.setdefault(cast("int", sub.schema_path[0]), []).append(sub)
    kinds = [_type_error(subs) for subs in branches.values()]
    options = cast("list[Any]", error.validator_value)
    if not branches:
        return Violation(pointer, str(error.validator), "is not allowed here", None, shown(error.instance))
    if all(kinds) and len(kinds) == len(options):
        allowed = ", ".join(dict.fromkeys(types(sub.validator_value) for sub in kinds if sub))
        message = f"must be one of these types: {allowed}"
        return Violation(pointer, str(error.validator), message, allowed, shown(error.instance))
    best = min(_misfit(subs) for subs in branches.values())
    ties = [subs for subs in branches.values() if _misfit(subs) == best][:3]
    forms = [
        "; ".join(_placed(violation, pointer) for sub in subs[:3] for violation in _describe(sub)[:3])
        for subs in ties
    ]
    count = len(options)
    message = f"fits none of the {count} allowed forms; the closest needs: {' - or: '.join(forms)}"
    return Violation(pointer, str(error.validator), message, None, shown(error.instance))


def _placed(violation: Violation, base: str) -> str:
    where = violation.pointer.removeprefix(base)
    return f"{where}: {violation.message}" if where else violation.message


def _type_error(errors: Sequence[_Error]) -> _Error | None:
    return next((one for one in errors if one.validator == "type" and not one.path), None)


def _misfit(errors: Sequence[_Error]) -> tuple[bool, bool, int]:
    wrong_tag = any(one.validator in {"const", "enum"} for one in errors)
    return (_type_error(errors) is not None, wrong_tag, len(errors))


def main() -> None:
    """Explain what stands on standard input; write a JSON array of violations."""
    asked = json.loads(sys.stdin.read())
    found = violations(asked["schema"], asked["instance"])
    sys.stdout.write(json.dumps([asdict(one) for one in found]))


if __name__ == "__main__":
    main()

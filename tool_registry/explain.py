"""Why arguments do not fit a schema, in words a model can act on.

The reference engine finds the violations; the sentences are built from pointer and rule, never from the
engine's own messages, which quote values. It can be slow on hostile schemas, so it runs in the event loop
only where `cheap` says so; elsewhere behind the `Explainer` port, in a process that can be killed:
`python -m tool_registry.explain` reads `{"schema": ..., "instance": ...}` and writes the violations.
"""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any, Protocol, cast

import jsonschema
import jsonschema.exceptions
import jsonschema.validators
import jsonschema_specifications
import referencing.exceptions

from tool_registry.errors import Violation

MAX_VIOLATIONS = 20
_MAX_SHOWN_CHARS = 60
_MAX_OPTIONS = 20
_SLOW_RULES = ('"pattern"', '"patternProperties"', '"uniqueItems"')
_CHEAP_INSTANCE_CHARS = 16_384
_CHEAP_SCHEMA_CHARS = 65_536

_Error = jsonschema.exceptions.ValidationError


class Explainer(Protocol):
    """Runs `violations` where it can be stopped."""

    async def explain(self, schema_json: str, instance_json: str) -> tuple[Violation, ...] | None:
        """The violations, or None when they could not be had in time."""
        ...


def cheap(schema_json: str, instance_json: str) -> bool:
    """Whether the reference engine may run in the event loop on these."""
    return (
        len(instance_json) <= _CHEAP_INSTANCE_CHARS
        and len(schema_json) <= _CHEAP_SCHEMA_CHARS
        and not any(rule in schema_json for rule in _SLOW_RULES)
    )


def violations(schema: Mapping[str, Any], instance: Any) -> tuple[Violation, ...]:
    """Every way in which `instance` breaks `schema`, at most 20, in document order.

    References are resolved within the schema and the bundled metaschemas only; nothing is fetched.
    Empty when the reference engine finds nothing, or can't go on.
    """
    validator_class = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    validator = validator_class(dict(schema), registry=jsonschema_specifications.REGISTRY)
    try:
        errors = list(islice(validator.iter_errors(instance), MAX_VIOLATIONS))
        found = [violation for error in errors for violation in _describe(error)]
    except (RecursionError, referencing.exceptions.Unresolvable):
        return ()  # the deciding engine's own, masked words are shown instead
    unique = {(one.pointer, one.rule, one.message): one for one in found}
    return tuple(unique.values())[:MAX_VIOLATIONS]


def pointer_of(path: Iterable[str | int]) -> str:
    """A JSON pointer of path segments."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def shown(value: Any) -> str:
    """A value by type and size; the value itself only when it is short."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        text = str(value) if abs(value) < 10**15 else f"{value:.3e}"
        return f"number {text}"
    if isinstance(value, str):
        if len(value) <= _MAX_SHOWN_CHARS:
            return f"string {json.dumps(value, ensure_ascii=False)}"
        return f"string of {len(value):,} characters"
    if isinstance(value, list):
        return f"array of {len(cast('list[Any]', value)):,} items"
    keys = [str(key)[:30] for key in islice(cast("dict[str, Any]", value), 5)]
    return f"object with keys {', '.join(keys)}" if keys else "empty object"


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` is most likely a slip of."""
    lowered = {one.lower(): one for one in known}
    match = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.6)
    return lowered[match[0]] if match else None


def _describe(error: _Error) -> list[Violation]:
    rule = str(error.validator)
    pointer = pointer_of(error.absolute_path)
    if rule in {"additionalProperties", "unevaluatedProperties"}:
        unknown = _unknown_properties(error, pointer)
        if unknown:
            return unknown
    if rule in {"anyOf", "oneOf"} and error.context:
        return [_best_branch(error, pointer)]
    message, expected = _sentence(rule, error.validator_value, error.instance)
    if rule == "required":
        message = f"{_missing(error)!r} is required"
    return [Violation(pointer, rule, message, expected, shown(error.instance))]


def _missing(error: _Error) -> str:
    names = cast("list[str]", error.validator_value)
    found = cast("dict[str, Any]", error.instance)
    # One error a missing name, each naming it first in the engine's message; the name is ours to take.
    return next(
        (name for name in names if name not in found and error.message.startswith(repr(name))), names[0]
    )


def _unknown_properties(error: _Error, pointer: str) -> list[Violation]:
    schema = cast("dict[str, Any]", error.schema)
    known = list(cast("dict[str, Any]", schema.get("properties", {})))
    if "patternProperties" in schema or (not known and str(error.validator) != "additionalProperties"):
        return []
    instance = cast("dict[str, Any]", error.instance)
    found: list[Violation] = []
    for name in islice((key for key in instance if key not in known), MAX_VIOLATIONS):
        near = closest(name, known)
        hint = f"; did you mean {near!r}?" if near else ""
        allowed = ", ".join(known[:_MAX_OPTIONS]) or "no properties"
        found.append(
            Violation(
                f"{pointer}{pointer_of([name[:100]])}",
                str(error.validator),
                f"unknown property {name[:100]!r}{hint}",
                f"one of: {allowed}",
                shown(instance[name]),
            )
        )
    return found


def _best_branch(error: _Error, pointer: str) -> Violation:
    """One violation for a failed `anyOf`/`oneOf`: what the form that fits best still lacks."""
    branches: dict[int, list[_Error]] = {}
    for sub in error.context or ():
        branches.setdefault(cast("int", sub.schema_path[0]), []).append(sub)
    kinds = [_type_error(subs) for subs in branches.values()]
    options = cast("list[Any]", error.validator_value)
    if all(kinds) and len(kinds) == len(options):
        allowed = ", ".join(dict.fromkeys(_types(sub.validator_value) for sub in kinds if sub))
        message = f"must be one of these types: {allowed}"
        return Violation(pointer, str(error.validator), message, allowed, shown(error.instance))
    best = min(_misfit(subs) for subs in branches.values())
    ties = [subs for subs in branches.values() if _misfit(subs) == best][:3]
    forms = [
        "; ".join(_placed(violation, pointer) for sub in subs[:3] for violation in _describe(sub))
        for subs in ties
    ]
    count = len(options)
    message = f"fits none of the {count} allowed forms; the closest needs: {' - or: '.join(forms)}"
    return Violation(pointer, str(error.validator), message[:600], None, shown(error.instance))


def _placed(violation: Violation, base: str) -> str:
    where = violation.pointer.removeprefix(base)
    return f"{where}: {violation.message}" if where else violation.message


def _type_error(errors: Sequence[_Error]) -> _Error | None:
    return next((one for one in errors if one.validator == "type" and not one.path), None)


def _misfit(errors: Sequence[_Error]) -> tuple[bool, bool, int]:
    wrong_tag = any(one.validator in {"const", "enum"} for one in errors)
    return (_type_error(errors) is not None, wrong_tag, len(errors))


def _types(value: Any) -> str:
    return " or ".join(cast("list[str]", value)) if isinstance(value, list) else str(value)


def _sentence(rule: str, value: Any, instance: Any) -> tuple[str, str | None]:
    """What a rule asks for, without quoting the value that broke it."""
    if rule == "type":
        return _type_sentence(_types(value), instance), _types(value)
    if rule in {"enum", "const"}:
        return _enum_sentence(cast("list[Any]", value) if rule == "enum" else [value], instance)
    bound = _bound_sentence(rule, value)
    if bound is not None:
        return bound, f"{rule} {value}"
    if rule == "pattern":
        return f"must match the pattern {str(value)[:200]}", str(value)[:200]
    if rule == "format":
        return f"must be a valid {value}", str(value)
    if rule == "uniqueItems":
        return "must not hold the same item twice", None
    if rule == "not":
        return "must not have this form", None
    return f"breaks the rule {rule!r}", None


def _type_sentence(wanted: str, instance: Any) -> str:
    sentence = f"must be {wanted}, not {_json_type(instance)}"
    if isinstance(instance, str) and wanted in {"integer", "number", "boolean", "array", "object", "null"}:
        try:
            json.loads(instance[:10_000])
        except ValueError:
            return sentence
        return f"{sentence}; send the value itself, without quotes"
    return sentence


def _json_type(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(cast("type[Any]", type(value)), "something else")


def _enum_sentence(values: list[Any], instance: Any) -> tuple[str, str]:
    options = ", ".join(json.dumps(one, ensure_ascii=False)[:60] for one in values[:_MAX_OPTIONS])
    if len(values) > _MAX_OPTIONS:
        options += f" and {len(values) - _MAX_OPTIONS} more"
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


def main() -> None:
    """Explain what stands on standard input; write a JSON array of violations."""
    asked = json.loads(sys.stdin.read())
    found = violations(asked["schema"], asked["instance"])
    sys.stdout.write(json.dumps([asdict(one) for one in found]))


if __name__ == "__main__":
    main()

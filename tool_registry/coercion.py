"""What is changed of a call's arguments before they run, and the record of it.

Always: a null for an optional property whose schema refuses null is dropped. Under the policy `coerce: safe`:
text that stands where the schema allows no text is read as the JSON value that it spells. Nothing else is
ever changed, and every change is told by pointer and type, never by value.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from tool_registry.arguments import strict_json
from tool_registry.explain import bounded_pointer, is_within, pointer_of
from tool_registry.schema import CompiledSchema

_MAX_VALUES = 2_000
_MAX_TEXT_CHARS = 1_000_000
_MAX_ROUNDS = 4  # text inside an object that was text itself
_TYPES = {dict: "object", list: "array", bool: "boolean", int: "integer", float: "number"}


@dataclass(frozen=True, slots=True)
class Adjustment:
    """One change of a call's arguments.

    Attributes:
        pointer: where, into the arguments as they were given.
        kind: `dropped_null` or `coerced`.
        was: the JSON type of what came.
        became: the JSON type of what stands there now; "" where it was dropped.
    """

    pointer: str
    kind: str
    was: str
    became: str = ""

    def as_json(self) -> dict[str, str]:
        """The stored and wire form."""
        return {"pointer": self.pointer, "kind": self.kind, "was": self.was, "became": self.became}


def dropped(pointers: Iterable[str]) -> tuple[Adjustment, ...]:
    """The record of nulls that were taken to mean "not given"."""
    return tuple(Adjustment(pointer, "dropped_null", "null") for pointer in pointers)


def coerced(
    schema: CompiledSchema, params: dict[str, Any]
) -> tuple[dict[str, Any], tuple[Adjustment, ...]] | None:
    """Arguments that fit, made of some that do not, by reading text as the value that it spells.

    `"5"` becomes 5, `"false"` false, `"null"` null and `'["a"]'` an array where the schema allows no text.
    Text that may stand as text is left alone, and so is everything when the whole would not fit after all.

    Returns:
        The new arguments and what was changed; None when they can't be made to fit so.
    """
    if not is_within(params, max_values=_MAX_VALUES) or not schema.quick_to_explain(params):
        return None
    changed = copy.deepcopy(params)
    found: list[Adjustment] = []
    for _ in range(_MAX_ROUNDS):
        places = _spelled(schema.errors(changed), changed)
        if not places:
            break
        for path, value in places:
            _place(changed, path, value)
            found.append(Adjustment(bounded_pointer(path), "coerced", "string", json_type(value)))
        if schema.accepts(changed):
            return changed, tuple(found)
    return None


def json_type(value: Any) -> str:
    """The JSON type of a parsed value."""
    return "null" if value is None else _TYPES.get(cast("type[Any]", type(value)), "string")


def _spelled(errors: Iterable[Any], params: dict[str, Any]) -> list[tuple[Sequence[str | int], Any]]:
    """Where text is refused as text, and the value that it spells."""
    places: dict[tuple[str | int, ...], Any] = {}
    for error in errors:
        path = tuple(cast("Sequence[str | int]", error.instance_path))
        text = _at(params, path)
        if not path or not isinstance(text, str) or not _refuses_text(error, path):
            continue
        try:
            places[path] = _value_of(text)
        except ValueError:
            continue
    return sorted(places.items(), key=lambda place: pointer_of(place[0]))


def _refuses_text(error: Any, path: tuple[str | int, ...]) -> bool:
    """Whether no text whatever would do at this place."""
    kind = error.kind
    if tuple(error.instance_path) != path:
        return False
    if kind.name == "type":
        return "string" not in kind.types
    if kind.name == "enum":
        return not any(isinstance(option, str) for option in kind.options)
    if kind.name in {"anyOf", "oneOf"} and hasattr(kind, "context"):
        return all(any(_refuses_text(one, path) for one in branch) for branch in kind.context)
    return False


def _value_of(text: str) -> Any:
    """The JSON value that a text spells, without anything around it.

    Raises:
        ValueError: it spells none, or text again.
    """
    if len(text) > _MAX_TEXT_CHARS or (text[:1] not in {"[", "{"} and text != text.strip()):
        raise ValueError("no value is spelled like this")
    value = strict_json(text)
    if isinstance(value, str):
        raise ValueError("it is text of text")  # noqa: TRY004 - of no interest to the caller
    return value


def _at(params: Any, path: Iterable[str | int]) -> Any:
    for part in path:
        params = params[part]
    return params


def _place(params: dict[str, Any], path: Sequence[str | int], value: Any) -> None:
    _at(params, path[:-1])[path[-1]] = value

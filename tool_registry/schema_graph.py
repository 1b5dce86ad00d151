"""How often a schema makes a validator look at one value: alternatives and references multiply.

Twenty definitions, each of which names the next one twice, are a small schema that takes a million looks.
Measured: 12 ns a look by the deciding engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import unquote

MAX_LOOKS = 100_000
_LISTS = ("allOf", "anyOf", "oneOf")
_SINGLE = ("not", "if", "then", "else")
_NAMED = ("dependentSchemas", "dependencies")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


class TooManyLooks(Exception):
    """The alternatives multiply beyond reason; the message says how far."""


@dataclass(frozen=True, slots=True)
class Branching:
    """What was measured of a schema.

    Attributes:
        looks: at one value, at most, over all places of the schema.
        recursive: a schema may contain itself, so that looks multiply again with each level of a value.
    """

    looks: int
    recursive: bool

    def looks_at(self, depth: int) -> int:
        """An upper bound of the looks at one value that lies `depth` levels deep."""
        return self.looks**depth if self.recursive else self.looks


def measured(schema: dict[str, Any]) -> Branching:
    """Measure a schema.

    Raises:
        TooManyLooks: more than 100,000 at one value.
    """
    return _Graph(schema).measured()


@dataclass(slots=True)
class _Open:
    """A schema on the way down, with what was counted of it."""

    part: dict[str, Any]
    rest: Iterator[dict[str, Any]]
    looks: int = 1


class _Graph:
    def __init__(self, schema: dict[str, Any]) -> None:
        self._whole = schema
        self._parts = list(_objects(schema))
        self._anchors = {
            str(part[key]): part
            for part in self._parts
            for key in ("$anchor", "$dynamicAnchor")
            if isinstance(part.get(key), str)
        }
        self._looks: dict[int, int] = {}

    def measured(self) -> Branching:
        looks = max(self._looks_of(part) for part in self._parts)
        return Branching(looks, self._recursive())

    def _looks_of(self, start: dict[str, Any]) -> int:
        """The looks at one value that a schema takes; depth first, without the interpreter's stack."""
        if id(start) in self._looks:
            return self._looks[id(start)]
        stack = [_Open(start, self._at_the_same_place(start))]
        while stack:
            here = stack[-1]
            following = next(here.rest, None)
            if following is None:
                stack.pop()
                self._looks[id(here.part)] = here.looks
                if stack:
                    stack[-1].looks += here.looks
            elif id(following) in self._looks:
                here.looks += self._looks[id(following)]
            else:
                self._looks[id(following)] = 1  # a reference back to there, which the engine remembers
                stack.append(_Open(following, self._at_the_same_place(following)))
            if here.looks > MAX_LOOKS:
                raise TooManyLooks(
                    f"its alternatives multiply to more than {MAX_LOOKS:,} checks of one value"
                )
        return self._looks[id(start)]

    def _at_the_same_place(self, part: dict[str, Any]) -> Iterator[dict[str, Any]]:
        for key in _LISTS:
            if isinstance(part.get(key), list):
                yield from (one for one in part[key] if isinstance(one, dict))
        for key in _SINGLE:
            if isinstance(part.get(key), dict):
                yield part[key]
        for key in _NAMED:
            if isinstance(part.get(key), dict):
                yield from (one for one in part[key].values() if isinstance(one, dict))
        yield from self._targets(part)

    def _targets(self, part: dict[str, Any]) -> Iterator[dict[str, Any]]:
        for key in _REFERENCES:
            target = self._target(part.get(key))
            if target is not None:
                yield target

    def _target(self, reference: Any) -> dict[str, Any] | None:
        """The schema that a reference leads to; None outside this one, where nothing multiplies."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        fragment = unquote(reference[1:])
        if fragment and not fragment.startswith("/"):
            return self._anchors.get(fragment)
        target: Any = self._whole
        for step in fragment.split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(target, dict):
                target = cast("dict[str, Any]", target).get(key)
            elif isinstance(target, list) and key.isdecimal() and int(key) < len(cast("list[Any]", target)):
                target = cast("list[Any]", target)[int(key)]
            else:
                return None
        return cast("dict[str, Any]", target) if isinstance(target, dict) else None

    def _recursive(self) -> bool:
        """Whether some schema leads to itself, by references and by lying inside."""
        leads = {id(part): {*map(id, _inside(part)), *map(id, self._targets(part))} for part in self._parts}
        settled: set[int] = set()
        for start, first in leads.items():
            open_nodes = {start}
            stack: list[tuple[int, Iterator[int]]] = [(start, iter(first))]
            while stack:
                node, rest = stack[-1]
                following = next(rest, None)
                if following is None:
                    stack.pop()
                    open_nodes.discard(node)
                    settled.add(node)
                elif following in open_nodes:
                    return True
                elif following not in settled and following in leads:
                    open_nodes.add(following)
                    stack.append((following, iter(leads[following])))
        return False


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in a JSON value, itself first."""
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, dict):
            yield cast("dict[str, Any]", one)
            stack.extend(cast("dict[str, Any]", one).values())
        elif isinstance(one, list):
            stack.extend(cast("list[Any]", one))


def _inside(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The objects directly inside one, through lists too."""
    stack = list(part.values())
    while stack:
        one = stack.pop()
        if isinstance(one, dict):
            yield cast("dict[str, Any]", one)
        elif isinstance(one, list):
            stack.extend(cast("list[Any]", one))

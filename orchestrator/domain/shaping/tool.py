"""One tool, shaped for one family of providers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from orchestrator.domain.shaping.arrays import modern_arrays
from orchestrator.domain.shaping.family import LIMITS, Family
from orchestrator.domain.shaping.gemini import gemini_schema
from orchestrator.domain.shaping.notes import Notes
from orchestrator.domain.shaping.properties import rename_properties
from orchestrator.domain.shaping.references import TooManyReferences, Unresolved, move_references
from orchestrator.domain.shaping.root import NotAnObject, TooManyBranches, plain_root
from orchestrator.domain.shaping.strict import strict_schema
from orchestrator.domain.shaping.subschemas import Schema, TooDeep


@dataclass(frozen=True, slots=True)
class Shaped:
    """A schema's shaped copy.

    Attributes:
        schema: equals the original when `changes` is empty.
        changes: what was changed, one sentence each.
        refusals: why the provider would refuse it all the same; it must not be sent then.
        renames: names of properties as the model sees them, by the owner's.
    """

    schema: Schema
    changes: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    renames: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class ShapedTool:
    """A tool's shaped copy; see `Shaped`."""

    name: str
    description: str
    schema: Schema
    changes: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    renames: Mapping[str, str] = field(default_factory=dict[str, str])


def shape_schema(schema: Any, family: Family) -> Shaped:
    """Shape a tool's parameters so that one odd schema never makes every request fail.

    Source: BR-057, BR-061, and the providers' answers named in `family`.
    """
    if not isinstance(schema, dict):
        if schema is True or schema is None:
            return Shaped({"type": "object", "properties": {}}, ("an open schema became an open object",))
        return Shaped({}, refusals=("the schema is no object: give one that describes the arguments",))
    original = cast("Schema", schema)
    changes: list[str] = []
    try:
        shaped = move_references(original, changes)
        shaped = plain_root(shaped, changes)
        arrays: list[str] = []
        shaped = modern_arrays(shaped, arrays, need_items=LIMITS[family].arrays_need_items)
        shaped, renames = rename_properties(shaped, changes, LIMITS[family].property_name)
    except Unresolved as reference:
        fix = "define it under $defs, or take the reference out"
        return Shaped({}, refusals=(f"$ref {reference} leads to nothing in the schema: {fix}",))
    except NotAnObject:
        kind = original.get("type")
        fix = "put the value into a property of an object"
        return Shaped({}, refusals=(f"the root is of type {kind!r}, not object: {fix}",))
    except (TooDeep, TooManyBranches, TooManyReferences) as bound:
        return Shaped({}, refusals=(f"{bound}: make it simpler",))
    notes = Notes()
    if family == "openai-strict":
        shaped = strict_schema(shaped, notes)
    elif family == "gemini":
        shaped = gemini_schema(shaped, notes)
    told = dict.fromkeys([*changes, *arrays, *notes.changes])
    return Shaped(shaped, tuple(told), notes.refusals, renames)


def shape_tool(name: str, description: str, parameters_json: str, family: Family) -> ShapedTool:
    """Shape one tool: its schema, and its description where the family bounds that.

    A name that providers refuse is a refusal: names are made legal where tools are registered.
    """
    try:
        shaped = shape_schema(json.loads(parameters_json), family)
    except (ValueError, RecursionError):  # not JSON, or nested beyond what Python reads
        shaped = Shaped({}, refusals=("the schema is not readable JSON: give a JSON object",))
    changes, refusals = list(shaped.changes), list(shaped.refusals)
    legal = LIMITS[family].tool_name
    if not legal.fullmatch(name):
        refusals.append(f"the name {name!r} does not fit {legal.pattern}: rename the tool or its server")
    limit = LIMITS[family].max_description_chars
    if limit is not None and len(description) > limit:
        changes.append(f"the description was cut from {len(description)} to {limit} characters")
        description = description[: limit - 3] + "..."
    return ShapedTool(name, description, shaped.schema, tuple(changes), tuple(refusals), shaped.renames)


def shape_tools(tools: Sequence[tuple[str, str, str]], family: Family) -> list[ShapedTool]:
    """Shape the tools of one request, `(name, description, parameters_json)` each, in their order.

    Those beyond the family's number of tools are refused, the last ones first; so is a repeated name.
    """
    limit = LIMITS[family].max_tools
    seen: set[str] = set()
    shaped: list[ShapedTool] = []
    for name, description, parameters_json in tools:
        tool = shape_tool(name, description, parameters_json, family)
        if name in seen:
            tool = replace(tool, refusals=(*tool.refusals, "another tool has the same name: rename one"))
        elif not tool.refusals:
            if limit is not None and len(seen) >= limit:
                fix = "offer fewer tools, or leave some out by include and exclude"
                tool = replace(tool, refusals=(f"{family} takes {limit} tools in a request: {fix}",))
            else:
                seen.add(name)
        shaped.append(tool)
    return shaped

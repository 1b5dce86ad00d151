"""What the registry costs, each figure against something plain: `scripts/bench --registry`."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jsonschema

from tool_registry.catalogue import build_catalogue
from tool_registry.coercion import coerced
from tool_registry.context import ToolContext
from tool_registry.definition import ToolDefinition
from tool_registry.output import ToolOutput
from tool_registry.registry import Offer, ToolRegistry
from tool_registry.schema import CompiledSchema
from tool_registry.tool import ToolSource, ToolTraits

TOOLS = 1_000
# As an issue tracker's search tool has it: nested, with a reference, alternatives and formats.
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1, "maxLength": 500},
        "labels": {"type": "array", "items": {"type": "string"}, "maxItems": 20},
        "state": {"enum": ["open", "closed", "all"]},
        "since": {"type": "string", "format": "date-time"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100},
        "assignee": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "filters": {"type": "array", "items": {"$ref": "#/$defs/Filter"}},
    },
    "required": ["query"],
    "additionalProperties": False,
    "$defs": {
        "Filter": {
            "type": "object",
            "properties": {
                "field": {"enum": ["author", "milestone", "project"]},
                "operator": {"enum": ["is", "is_not"]},
                "value": {"type": "string"},
            },
            "required": ["field", "operator", "value"],
            "additionalProperties": False,
        }
    },
}
GOOD: dict[str, Any] = {
    "query": "memory leak in the parser",
    "labels": ["bug", "parser", "regression"],
    "state": "open",
    "since": "2026-11-30T12:00:00Z",
    "limit": 20,
    "assignee": None,
    "filters": [
        {"field": "author", "operator": "is", "value": f"person number {number}"} for number in range(5)
    ],
}
WRONG: dict[str, Any] = {**GOOD, "limit": "20", "labels": '["bug"]'}


@dataclass(frozen=True, slots=True)
class Cost:
    """What something takes, and what the plain thing beside it takes.

    Attributes:
        seconds: of one run, the least of all repetitions.
        plain: what it is compared with.
    """

    name: str
    seconds: float
    plain: str
    plain_seconds: float

    @property
    def ratio(self) -> float:
        """How many of the plain thing it takes."""
        return self.seconds / self.plain_seconds


class _Tool:
    """A tool that is never called."""

    def __init__(self, number: int) -> None:
        self.definition = ToolDefinition.of(f"tool_{number:04}", f"Search tracker {number}. " * 10, SCHEMA)
        self.traits = ToolTraits(ToolSource.MCP, "trackers")

    async def execute(self, params: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Answer nothing."""
        return ToolOutput(None)


def costs(*, repetitions: int = 20) -> list[Cost]:
    """Measure everything."""
    return [*_checks(repetitions), *_catalogues(repetitions)]


def _checks(repetitions: int) -> list[Cost]:
    compiled = CompiledSchema(json.dumps(SCHEMA))
    reference: Any = jsonschema.Draft202012Validator(
        SCHEMA, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
    )
    if not (compiled.accepts(GOOD) and reference.is_valid(GOOD)) or coerced(compiled, WRONG) is None:
        raise AssertionError("the arguments do not fit as they should")
    plain = "the reference engine's verdict"
    verdict_s = _least(lambda: reference.is_valid(GOOD), repetitions, 20)

    def check() -> bool:
        params, _ = compiled.without_refused_nulls(GOOD)
        return compiled.accepts(params)

    return [
        Cost("check of one call's arguments", _least(check, repetitions, 2_000), plain, verdict_s),
        Cost(
            "coercion of two texts",
            _least(lambda: coerced(compiled, WRONG), repetitions, 200),
            plain,
            verdict_s,
        ),
    ]


def _catalogues(repetitions: int) -> list[Cost]:
    offers = [Offer(_Tool(number)) for number in range(TOOLS)]
    definitions = [offer.tool.definition.as_json() for offer in offers]
    registry = ToolRegistry()
    first_s = _least(lambda: ToolRegistry().replace("trackers", offers), max(repetitions // 10, 1), 1)
    registry.replace("trackers", offers)

    def serialise() -> str:
        return hashlib.sha256(json.dumps(definitions).encode()).hexdigest()

    plain = "one json.dumps and sha256 of its definitions"
    plain_s = _least(serialise, repetitions, 1)
    again_s = _least(lambda: registry.replace("trackers", offers), max(repetitions // 10, 1), 1)
    build_s = _least(lambda: build_catalogue(registry).as_json_text().encode(), repetitions, 1)
    return [
        Cost(f"registration of {TOOLS:,} tools", first_s, plain, plain_s),
        Cost("registration of the same again", again_s, plain, plain_s),
        Cost("their catalogue: filtered, hashed and written", build_s, plain, plain_s),
    ]


def _least(work: Callable[[], object], repetitions: int, times: int) -> float:
    """Seconds of one `work`; other programs only ever add to it, so the least is the nearest to the truth."""
    best = float("inf")
    for _ in range(repetitions):
        started = time.process_time()
        for _ in range(times):
            work()
        best = min(best, (time.process_time() - started) / times)
    return best


def cost_table(found: list[Cost]) -> str:
    """The figures for people."""
    width = max(len(cost.name) for cost in found)
    lines = [
        f"{cost.name:<{width}}  {_shown(cost.seconds):>9}  {cost.ratio:>8.3f}"
        f" of {cost.plain} ({_shown(cost.plain_seconds)})"
        for cost in found
    ]
    return "\n".join(lines)


def _shown(seconds: float) -> str:
    return f"{seconds * 1e6:,.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:,.1f} ms"

"""A project's cases, run in the sandbox that jobs get, through the checks that every call goes through."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tool_registry.clock import Clock
from tool_registry.context import ToolContext
from tool_registry.errors import CallError
from tool_registry.execution import Surroundings, ToolExecutor
from tool_registry.output import ToolOutput
from tool_registry.registry import ToolRegistry
from wasm_tools.granted_host import Outside
from wasm_tools.loading import load_wasm_tool
from wasm_tools.projects.build import checked
from wasm_tools.projects.cases import Case
from wasm_tools.projects.project import Project
from wasm_tools.runtime import WasmRuntime

_JOB = "trial"


class TrialClock:
    """The real clock, except that a case may set what it shows."""

    def __init__(self, real: Clock) -> None:
        self._real = real
        self.shown: datetime | None = None

    def now(self) -> datetime:
        """As set, else the real time."""
        return self.shown or self._real.now()

    def monotonic(self) -> float:
        """The real one: limits hold."""
        return self._real.monotonic()


@dataclass(frozen=True, slots=True)
class Tried:
    """How one case went.

    Attributes:
        got: the output, or the error, as a model would read it.
        wrong: what is not as expected; "" when all is.
    """

    case: Case
    got: str
    is_error: bool
    wrong: str
    duration_ms: int


async def try_cases(
    project: Project, cases: Sequence[Case], runtime: WasmRuntime, clock: TrialClock
) -> AsyncIterator[Tried]:
    """Run the cases one after the other, each in a fresh instance.

    Args:
        project: built before.
        cases: in their order.
        runtime: reads `clock`.
        clock: set for each case.

    Raises:
        UnfitTool: the component or its sidecar can't be used.
    """
    for case in cases:
        clock.shown = case.now
        offer = checked(await load_wasm_tool(project.component, runtime, outside=_outside(case)))
        registry = ToolRegistry()
        names = registry.replace(offer.tool.traits.owner, [offer]).registered
        yield await _tried(case, names, ToolExecutor(registry, Surroundings(clock=clock)))


async def _tried(case: Case, names: Sequence[str], executor: ToolExecutor) -> Tried:
    name = case.tool or (names[0] if len(names) == 1 else "")
    if name not in names:
        wrong = f"'tool' has to name one of {', '.join(names)}"
        return Tried(case, "", is_error=True, wrong=wrong, duration_ms=0)
    try:
        output = await executor.execute(
            name, case.params, ToolContext(_JOB, case.name, grants=frozenset({name}))
        )
    except CallError as error:
        output = ToolOutput(f"{error.code}: {error.message}", is_error=True)
    got = output.text()
    return Tried(case, got, output.is_error, _wrong(case, got, is_error=output.is_error), output.duration_ms)


def _wrong(case: Case, got: str, *, is_error: bool) -> str:
    """Why it is not as expected; "" when it is."""
    expected: Any = getattr(case, case.expectation)
    if is_error != (case.expectation == "error"):
        kind = "an error" if is_error else "an output"
        return f"{kind} came where {case.expectation.replace('_', ' ')} {_shown(expected)} was expected"
    match case.expectation:
        case "output":
            fits = got == expected
        case "output_json":
            fits = _same_json(got, expected)
        case _:
            fits = expected in got
    return "" if fits else f"expected {case.expectation.replace('_', ' ')} {_shown(expected)}"


def _same_json(got: str, expected: Any) -> bool:
    try:
        # Texts are compared: in Python's own eyes true is 1.
        return _canonical(json.loads(got)) == _canonical(expected)
    except (ValueError, RecursionError):
        return False


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _outside(case: Case) -> Outside:
    async def secret(name: str) -> str | None:
        return case.secrets.get(name)

    async def file(_job_id: str, path: str, limit_bytes: int) -> bytes | None:
        text = case.workspace.get(path)
        return None if text is None else text.encode()[: limit_bytes + 1]

    return Outside(secret=secret, file=file)

"""`python -m bench`: one run, a table on standard output, JSON where it is asked for."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import uvloop

from bench.load import Workload, call
from bench.measurements import Sample, figures
from bench.process import ANSWER_FILE, RunningTarget, running
from bench.registry import cost_table, costs
from bench.report import as_json, table

_SETTLE_S = 0.3  # audit rows are written within a quarter of a second: they count


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured.

    Attributes:
        seconds: of one repetition. Many short ones find a moment in which nothing else runs.
        repetitions: of the two cases that are compared; the others, for context, get a third of them.
    """

    callers: tuple[int, ...] = (1, 8, 64)
    seconds: float = 0.25
    repetitions: int = 12


@dataclass(frozen=True, slots=True)
class _Case:
    name: str
    target: RunningTarget
    workload: Workload
    compared: bool = False


async def measure(plan: Plan) -> list[Sample]:
    """Start every server and load each in turn, so that what disturbs one disturbs all."""
    generator, servers = _cores()
    os.sched_setaffinity(0, generator)
    async with AsyncExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="portside-bench-")))
        cases = await _cases(stack, home, servers)
        for case in cases:
            await call(case.workload, callers=8, seconds=plan.seconds)
        return [
            await _sample(case, callers, plan)
            for callers in plan.callers
            for repetition in range(plan.repetitions)
            for case in cases
            if case.compared or repetition % 3 == 0
        ]


async def _cases(stack: AsyncExitStack, home: Path, cores: frozenset[int]) -> list[_Case]:
    async def started(name: str) -> RunningTarget:
        place = home / name
        place.mkdir(exist_ok=True)
        return await stack.enter_async_context(running(name, place, cores=cores))

    product = await started("portside")
    echo = Workload(product.address, "echo")
    answer = await echo.first_answer()
    (home / "bare").mkdir()
    (home / "bare" / ANSWER_FILE).write_bytes(answer)
    bare, framework = await started("bare"), await started("fastapi")
    return [
        _Case("bare", bare, Workload(bare.address, "echo", fixed=answer), compared=True),
        _Case("portside, read-only tool", product, echo, compared=True),
        _Case("portside, tool with effects", product, Workload(product.address, "note")),
        _Case("plain FastAPI route", framework, Workload(framework.address, "echo")),
    ]


async def _sample(case: _Case, callers: int, plan: Plan) -> Sample:
    before = await case.target.cpu_s()
    calls, seconds = await call(case.workload, callers=callers, seconds=plan.seconds)
    await asyncio.sleep(_SETTLE_S)
    return Sample(case.name, callers, calls, seconds, await case.target.cpu_s() - before)


def _cores() -> tuple[frozenset[int], frozenset[int]]:
    """The generator's cores, and the one that all servers share."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) == 1:
        return frozenset(cores), frozenset(cores)
    return frozenset(cores[:-1]), frozenset(cores[-1:])


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    usual = Plan()
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    parser.add_argument("--seconds", type=float, default=usual.seconds, help="of one repetition")
    parser.add_argument("--repetitions", type=int, default=usual.repetitions)
    parser.add_argument("--callers", type=int, nargs="+", default=list(usual.callers))
    parser.add_argument(
        "--registry", action="store_true", help="measure the registry instead, in this process"
    )
    given = parser.parse_args(arguments)
    if given.registry:
        _measure_registry(given.json)
        return
    plan = Plan(tuple(given.callers), given.seconds, given.repetitions)
    load_before = os.getloadavg()[0]
    found = figures(uvloop.run(measure(plan)), bare="bare")
    print(table(found))
    if given.json:
        given.json.write_text(as_json(found, load_before=load_before))


def _measure_registry(file: Path | None) -> None:
    found = costs()
    print(cost_table(found))
    if file:
        figures_of = [{**asdict(cost), "ratio": cost.ratio} for cost in found]
        file.write_text(json.dumps({"costs": figures_of}, indent=2) + "\n")


if __name__ == "__main__":
    main()

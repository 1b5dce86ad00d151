"""`python -m bench.wasm`: what a WASM tool's call costs, on how many cores, and what it leaves behind.

A call makes a fresh instance and drops it. The floor is the export of an instance that is kept, called
through the binding; `--extism` adds Extism doing the same echo. Everything is measured in turn within one
run: only ratios count.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop
from wasmtime import Store
from wasmtime.component import Component, Linker, Record

from bench.wasm_guests import build_all
from bench.wasm_host import TEXT, runtime
from tool_registry.context import ToolContext
from tool_registry.execution import Surroundings, ToolExecutor
from tool_registry.redaction import Redactor
from tool_registry.registry import Offer, ToolRegistry
from tool_registry.tool import Tool
from wasm_tools.call import Answer, Guest
from wasm_tools.engine import WasmEngine
from wasm_tools.host import RefusingHost
from wasm_tools.limits import Limits
from wasm_tools.loading import load_wasm_tool
from wasm_tools.runtime import WasmRuntime
from wasm_tools.state import CallState
from wasm_tools.surface import TOOL_INTERFACE
from worker.clock import SystemClock

EXTISM = "extism==1.1.1"
WARM = "export of a kept instance"
_PARAMS = json.dumps({"text": TEXT}, separators=(",", ":"))
_CONTEXT = ToolContext("job", "call")
_CALLS_A_JOB = 50

Act = Callable[[], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Plan:
    calls: int
    rounds: int
    memory_calls: int


@contextmanager
def kept_export(wasm: bytes) -> Generator[Act]:
    """The raw export through the binding's own call, on an instance that stays."""
    engine = WasmEngine()
    with ExitStack() as stack:
        stack.callback(engine.close)
        store = stack.enter_context(Store(engine.engine))
        store.set_epoch_deadline(1 << 40)
        component = Component(engine.engine, wasm)
        instance = Linker(engine.engine).instantiate(store, component)
        interface = instance.get_export_index(store, TOOL_INTERFACE)
        index = instance.get_export_index(store, "execute", interface)
        function = instance.get_func(store, index) if index else None
        assert function is not None

        async def act() -> str:
            request: Any = Record()
            request.params, request.context = _PARAMS, None
            return function(store, request).output

        yield act


def fresh_instance(guest: Guest) -> Act:
    """One call of the runtime without its thread: limits, host functions, an instance, dropped again."""

    async def act() -> str:
        limits = Limits()
        state = CallState(limits, time.monotonic() + limits.timeout_s)
        answer = guest.execute(state, RefusingHost(), _PARAMS, None)
        assert isinstance(answer, Answer), answer
        return answer.text

    return act


def whole_tool(tool: Tool) -> Act:
    """The tool as the executor calls it: over to a thread and back."""

    async def act() -> str:
        return str((await tool.execute({"text": TEXT}, _CONTEXT)).result)

    return act


def through_the_executor(tool: Tool) -> Act:
    """A job's call: schema, deadline, redaction, bounds, audit."""
    registry = ToolRegistry()
    registry.replace("echo.wasm", [Offer(tool)])
    redactor = Redactor({"KEY": "a-key-to-look-for-in-texts"})
    executor = ToolExecutor(registry, Surroundings(clock=SystemClock(), redactor=redactor, hosted=True))

    numbers = itertools.count()

    async def act() -> str:
        job = f"job-{next(numbers) // _CALLS_A_JOB}"  # each has its own rate limit, which is counted
        return str((await executor.execute("echo", {"text": TEXT}, ToolContext(job, "call"))).result)

    return act


async def call_costs(
    guests: dict[str, Path], made: WasmRuntime, plan: Plan, rival: Callable[[], dict[str, float]]
) -> dict[str, float]:
    """Microseconds of one call by case: medians of a round, the least of all rounds."""
    wasm = guests["echo"].read_bytes()
    tool = (await load_wasm_tool(guests["echo"], made)).tool
    found: dict[str, list[float]] = {}
    with kept_export(wasm) as kept:
        cases = {
            WARM: kept,
            "fresh instance": fresh_instance(await made.prepare(wasm)),
            "tool, from the event loop": whole_tool(tool),
            "tool, through the executor": through_the_executor(tool),
        }
        for _ in range(plan.rounds):
            for name, act in cases.items():
                found.setdefault(name, []).append(await _median_us(act, plan.calls))
            for name, took in rival().items():
                found.setdefault(f"Extism, {name} plug-in", []).append(took)
    return {name: min(all_rounds) for name, all_rounds in found.items()}


async def _median_us(act: Act, calls: int) -> float:
    times: list[float] = []
    for _ in range(calls):
        began = time.perf_counter()
        answer = await act()
        times.append((time.perf_counter() - began) * 1e6)
        assert answer == _PARAMS, answer
    return statistics.median(times)


async def core_use(guests: dict[str, Path], made: WasmRuntime, plan: Plan) -> dict[str, float]:
    """Calls a second with two at a time over one at a time: the best of all rounds of each."""
    found: dict[str, float] = {}
    for name, calls in (("spins", 8), ("echo", plan.calls)):
        tool = (await load_wasm_tool(guests[name], made)).tool
        best = {1: 0.0, 2: 0.0}
        for _ in range(plan.rounds):
            for callers, before in best.items():
                best[callers] = max(before, await _rate(tool, callers, calls))
        found[name] = best[2] / best[1]
    return found


async def _rate(tool: Tool, callers: int, calls: int) -> float:
    async def caller() -> None:
        for _ in range(calls // callers):
            await tool.execute({"text": TEXT}, _CONTEXT)

    began = time.monotonic()
    await asyncio.gather(*(caller() for _ in range(callers)))
    return calls / (time.monotonic() - began)


def memory(guests: dict[str, Path], plan: Plan) -> dict[str, dict[str, float]]:
    """What a process of its own holds after 100 calls and after all, by guest."""
    found: dict[str, dict[str, float]] = {}
    for name in ("echo", "asks", "traps", "half"):
        command = [sys.executable, "-m", "bench.wasm_memory", str(guests[name]), str(plan.memory_calls)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        held = json.loads(done.stdout)
        grown = held["after_all"] - held["after_100"]
        found[name] = {
            "ratio": held["after_all"] / held["after_100"],
            "bytes_a_call": grown / (plan.memory_calls - 100),
        }
    return found


@contextmanager
def extism(module: Path, calls: int) -> Generator[Callable[[], dict[str, float]]]:
    """Extism's figures, asked for as often as wanted; it lives in an environment of its own."""
    with tempfile.TemporaryDirectory(prefix="portside-bench-rival-") as home:
        venv.create(home, with_pip=True)
        python = str(Path(home) / "bin" / "python")
        subprocess.run([python, "-m", "pip", "install", "-qqq", EXTISM], check=True)
        command = [python, str(Path(__file__).with_name("extism_echo.py")), str(module), _PARAMS, str(calls)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin is not None
            assert process.stdout is not None

            def ask() -> dict[str, float]:
                assert process.stdin is not None
                assert process.stdout is not None
                process.stdin.write("\n")
                process.stdin.flush()
                return json.loads(process.stdout.readline())

            yield ask


async def measure(plan: Plan, *, with_extism: bool) -> dict[str, Any]:
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="portside-bench-")))
        guests = build_all(home)
        rival: Callable[[], dict[str, float]] = dict
        if with_extism:
            rival = stack.enter_context(extism(guests["extism"], plan.calls))
        async with runtime(home / "cache") as made:
            costs = await call_costs(guests, made, plan, rival)
            cores = await core_use(guests, made, plan)
        return {"call_us": costs, "two_threads": cores, "memory": memory(guests, plan)}


def show(found: dict[str, Any]) -> None:
    floor = found["call_us"][WARM]
    for name, took in found["call_us"].items():
        print(f"{name:<28} {took:8.1f} us {took / floor:6.2f} x the kept export")
    for name, ratio in found["two_threads"].items():
        print(f"{name:<28} {ratio:8.2f} x the calls a second with two at a time")
    for name, held in found["memory"].items():
        print(f"{name:<28} {held['ratio']:8.3f} x the memory, {held['bytes_a_call']:.1f} bytes a call")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.wasm", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    parser.add_argument("--calls", type=int, default=1_000, help="of one round")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--memory-calls", type=int, default=10_000)
    parser.add_argument("--extism", action="store_true", help=f"compare with {EXTISM} too")
    given = parser.parse_args(arguments)
    plan = Plan(given.calls, given.rounds, given.memory_calls)
    found = uvloop.run(measure(plan, with_extism=given.extism))
    show(found)
    if given.json:
        written = {"load": os.getloadavg()[0], "python": sys.version, **found}
        given.json.write_text(json.dumps(written, indent=2) + "\n")


if __name__ == "__main__":
    main()

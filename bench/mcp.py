"""`python -m bench.mcp`: MCP calls through the registry, against the SDK's own client doing the same.

Both talk over stdio to a server of their own of the same kind, in the same process and in turn. The SDK's
client parses a result into its models; the registry's way checks the arguments, the approval, the rate limit
and the deadline, takes secrets out, bounds the result and makes an audit record.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import resource
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import uvloop
from mcp import Client, StdioServerParameters
from mcp_types import TextContent

from bench.load import WrongAnswer
from bench.measurements import Figure, Sample, figures
from bench.report import table
from tool_registry.context import ToolContext
from tool_registry.execution import Surroundings, ToolExecutor
from tool_registry.mcp.config import McpConfig
from tool_registry.mcp.servers import McpServers
from tool_registry.redaction import Redactor
from tool_registry.registry import ToolRegistry
from worker.clock import SystemClock

SERVER = Path(__file__).with_name("echo_server.py")
ARGUMENTS = ["-I", "-S", str(SERVER)]
BARE = "the SDK's session"
OURS = "through the registry"
_READY_S = 30.0
_TEXTS = 16
_CALLS_A_JOB = 50

Call = Callable[[str], Awaitable[str]]


@asynccontextmanager
async def bare() -> AsyncGenerator[Call]:
    """The SDK's client over its own stdio transport."""
    server = StdioServerParameters(command=sys.executable, args=ARGUMENTS)
    async with Client(server, mode="legacy") as client:

        async def call(text: str) -> str:
            answer = await client.call_tool("echo", {"text": text})
            (block,) = answer.content
            return block.text if isinstance(block, TextContent) else ""

        yield call


@asynccontextmanager
async def through_the_registry() -> AsyncGenerator[Call]:
    """The product's way from the executor to the server."""
    registry = ToolRegistry()
    servers = McpServers(
        McpConfig.model_validate({"mcpServers": {"s": {"command": sys.executable, "args": ARGUMENTS}}}),
        on_tools=lambda owner, offers, instructions: registry.replace(
            owner, offers, instructions=instructions
        ),
        resolve_secret=_no_secret,
    )
    redactor = Redactor({"KEY": "a-key-to-look-for-in-texts"})
    executor = ToolExecutor(registry, Surroundings(clock=SystemClock(), redactor=redactor, hosted=True))
    numbers = itertools.count()
    async with servers:
        await servers.settled(_READY_S)

        async def call(text: str) -> str:
            job = f"job-{next(numbers) // _CALLS_A_JOB}"  # each has its own rate limit, which is counted
            output = await executor.execute("s_echo", {"text": text}, ToolContext(job, "call"))
            return str(output.result)

        yield call


async def _no_secret(_name: str) -> str | None:
    return None


async def measure(callers: Sequence[int], *, seconds: float, repetitions: int) -> list[Sample]:
    """Both in turn, so that what disturbs one disturbs the other."""
    async with bare() as sdk, through_the_registry() as ours:
        cases = ((BARE, sdk), (OURS, ours))
        for _, call in cases:
            await _load(call, 8, seconds)
        return [
            await _sample(name, call, number, seconds)
            for number in callers
            for _ in range(repetitions)
            for name, call in cases
        ]


async def _sample(name: str, call: Call, callers: int, seconds: float) -> Sample:
    cpu, began = _cpu_s(), time.monotonic()
    calls = await _load(call, callers, seconds)
    return Sample(name, callers, calls, time.monotonic() - began, _cpu_s() - cpu)


async def _load(call: Call, callers: int, seconds: float) -> int:
    ends = time.monotonic() + seconds

    async def caller(number: int) -> int:
        text, count = f"text number {number % _TEXTS:02}", 0
        while time.monotonic() < ends:
            if await call(text) != text:
                raise WrongAnswer(text)
            count += 1
        return count

    return sum(await asyncio.gather(*(caller(number) for number in range(callers))))


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def ratios(found: Sequence[Figure]) -> dict[int, float]:
    """Calls per second through the registry over those of the SDK's session, by callers."""
    rates = {(one.case, one.callers): one.calls_per_s for one in found}
    return {callers: rates[OURS, callers] / rates[BARE, callers] for case, callers in rates if case == BARE}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.mcp", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the ratios there")
    parser.add_argument("--seconds", type=float, default=0.4, help="of one repetition")
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--callers", type=int, nargs="+", default=[1, 8])
    given = parser.parse_args(arguments)
    work = measure(given.callers, seconds=given.seconds, repetitions=given.repetitions)
    found = figures(uvloop.run(work), bare=BARE)
    print(table(found))
    for callers, ratio in ratios(found).items():
        print(f"{callers} callers: {ratio:.2f} times the SDK's calls per second")
    if given.json:
        rates = {str(callers): ratio for callers, ratio in ratios(found).items()}
        given.json.write_text(json.dumps({"ratios": rates, "load": os.getloadavg()[0]}, indent=2) + "\n")


if __name__ == "__main__":
    main()

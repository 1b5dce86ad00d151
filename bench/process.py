"""A target's process, seen from outside: where it listens, and the CPU it has used."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

ANSWER_FILE = "answer.json"
_START_S = 60.0
_STOP_S = 15.0


@dataclass(frozen=True, slots=True)
class Address:
    """Where a target listens, and what lets a caller in."""

    socket: str
    job_id: str
    token: str


class TargetFailed(Exception):
    """A target did not start, or stopped too early."""


@dataclass(frozen=True, slots=True)
class RunningTarget:
    """A target that serves."""

    name: str
    address: Address
    process: asyncio.subprocess.Process

    async def cpu_s(self) -> float:
        """CPU seconds of all its threads so far, user and system, by its own count."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        return float(await _line(self.process, self.name))


@asynccontextmanager
async def running(name: str, home: Path, *, cores: frozenset[int]) -> AsyncGenerator[RunningTarget]:
    """Start a target and stop it at the end.

    Raises:
        TargetFailed: it did not start; what it said is on standard error.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bench.targets",
        name,
        str(home),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )
    try:
        yield RunningTarget(name, Address(**json.loads(await _line(process, name))), process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(_STOP_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


async def _line(process: asyncio.subprocess.Process, name: str) -> bytes:
    assert process.stdout is not None
    async with asyncio.timeout(_START_S):
        line = await process.stdout.readline()
    if not line:
        raise TargetFailed(f"the {name} server ended; its words are above")
    return line

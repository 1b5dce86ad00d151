"""Turning a component into machine code, in a process that may die of it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from wasm_tools.compile_child import EXIT_REFUSED


class CompileRefused(Exception):
    """The component can't be compiled, or not within the bounds; the message says which."""


@dataclass(frozen=True, slots=True)
class CompileBounds:
    """What compiling one component may use.

    Source: measured; a 20 MB component with CPython inside takes 9-13 s of CPU and 340 MB.
    """

    wall_s: float = 120.0
    cpu_s: int = 90
    memory_bytes: int = 2 << 30
    file_bytes: int = 512 << 20


async def compile_component(wasm: bytes, out: Path, bounds: CompileBounds) -> None:
    """Compile `wasm` into the file `out`. Cancelling kills the process.

    Raises:
        CompileRefused: invalid bytes, or over the bounds.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        "wasm_tools.compile_child",
        str(out),
        str(bounds.memory_bytes),
        str(bounds.cpu_s),
        str(bounds.file_bytes),
        env={"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(bounds.wall_s):
            _, stderr = await process.communicate(wasm)
    except TimeoutError:
        raise CompileRefused(f"compiling it takes more than {bounds.wall_s:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()  # a wait alone would leave its pipes open
    if process.returncode != 0:
        raise CompileRefused(_reason(process.returncode or 0, stderr, bounds))


def _reason(returncode: int, stderr: bytes, bounds: CompileBounds) -> str:
    if returncode == EXIT_REFUSED:
        return f"it is no valid component: {stderr.decode('utf-8', 'replace')}"
    if returncode in {-signal.SIGXCPU, -signal.SIGKILL}:
        return f"compiling it takes more than {bounds.cpu_s} s of CPU time; split it, or build it smaller"
    if returncode in {-signal.SIGABRT, -signal.SIGSEGV, 1}:
        mib = bounds.memory_bytes >> 20
        return f"compiling it failed, most likely for needing more than {mib} MiB of memory"
    return f"the compiler ended with status {returncode}"

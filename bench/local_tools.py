"""`python -m bench.local_tools`: what the local tools cost, against the bare call that does the same.

Every pair runs in turn in this process, so what disturbs one disturbs both. The figure is the median of the
repetitions; only ratios within a run mean something. `--swe-rex` installs SWE-ReX into an environment of its
own and has it run the same command.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import venv
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from tool_registry.context import ToolContext
from worker.clock import SystemClock
from worker.tools.local_tools import LocalTools, local_tools

_RIVAL = "swe-rex==1.4.0"
_LINES = 2_000
_ENTRIES = 500
_PATCH = "\n".join(
    [
        "*** Begin Patch",
        "*** Update File: code.py",
        "@@",
        " line 998",
        "-{old}",
        "+{new}",
        " line 1000",
        "*** End Patch",
    ]
)

Act = Callable[[int], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Pair:
    """A tool and the bare way to the same end.

    Attributes:
        bare: what is compared with; its name says how.
    """

    name: str
    bare_name: str
    tool: Act
    bare: Act


@dataclass(frozen=True, slots=True)
class Figure:
    """Medians in milliseconds, and their ratio."""

    name: str
    against: str
    tool_ms: float
    bare_ms: float
    ratio: float


async def measure(repetitions: int) -> list[Figure]:
    """One figure a pair."""
    with tempfile.TemporaryDirectory(prefix="portside-bench-") as made:
        root = Path(made) / "workspace"
        _fill(root)
        tools = local_tools(root, credentials={}, clock=SystemClock(), output_dir=Path(made) / "out")
        figures = [await _figure(pair, repetitions) for pair in _pairs(root, tools)]
        await tools.close()
        return figures


def _fill(root: Path) -> None:
    (root / "many").mkdir(parents=True)
    lines = "".join(f"line {number}\n" for number in range(_LINES))
    for name in ("code.py", "bare.py"):
        (root / name).write_text(lines)
    for number in range(_ENTRIES):
        (root / "many" / f"file{number:04}.txt").write_text("x\n")


async def _figure(pair: Pair, repetitions: int) -> Figure:
    await pair.tool(0)
    await pair.bare(0)
    times: dict[str, list[float]] = {"tool": [], "bare": []}
    for number in range(1, repetitions + 1):
        for name, act in (("tool", pair.tool), ("bare", pair.bare)):
            began = perf_counter()
            await act(number)
            times[name].append((perf_counter() - began) * 1000)
    tool, bare = statistics.median(times["tool"]), statistics.median(times["bare"])
    return Figure(pair.name, pair.bare_name, tool, bare, tool / bare)


def _pairs(root: Path, tools: LocalTools) -> list[Pair]:
    by_name = {tool.definition.name: tool for tool in tools.tools}

    def call(name: str, **params: Any) -> Act:
        async def act(number: int) -> None:
            output = await by_name[name].execute(params, ToolContext(job_id="bench", call_id=str(number)))
            assert not output.is_error, output.result

        return act

    async def patched(number: int) -> None:
        old = "line 999" if number == 0 else f"line 999 v{number - 1}"
        patch = _PATCH.format(old=old, new=f"line 999 v{number}")
        await call("apply_patch", patch=patch)(number)

    return [
        Pair(
            "shell: true",
            "asyncio subprocess, bash -c true",
            call("shell", command="true"),
            _bare_shell("true"),
        ),
        Pair(
            "shell: 1 MB of output",
            "asyncio subprocess, the same",
            call("shell", command="seq 150000"),
            _bare_shell("seq 150000"),
        ),
        Pair(
            "read_file, 2,000 lines", "open, read, split", call("read_file", path="code.py"), _bare_read(root)
        ),
        Pair(
            "write_file, 2,000 lines",
            "write, fsync, rename, fsync",
            call("write_file", path="made.txt", content=(root / "code.py").read_text()),
            _bare_write(root),
        ),
        Pair(
            "apply_patch, one line of 2,000",
            "replace, write, fsync, rename, fsync",
            patched,
            _bare_patch(root),
        ),
        Pair(
            "list_dir, 500 files", "scandir and stat, sorted", call("list_dir", path="many"), _bare_list(root)
        ),
    ]


def _bare_shell(command: str) -> Act:
    async def act(_number: int) -> None:
        process = await asyncio.create_subprocess_exec(
            "bash", "-c", command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        await process.communicate()

    return act


def _bare_read(root: Path) -> Act:
    async def act(_number: int) -> None:
        def work() -> None:
            "".join(
                f"{number}\t{line}\n"
                for number, line in enumerate((root / "code.py").read_text().split("\n"), 1)
            )

        await asyncio.to_thread(work)

    return act


def _bare_write(root: Path) -> Act:
    data = (root / "code.py").read_bytes()

    async def act(_number: int) -> None:
        await asyncio.to_thread(_replace, root / "bare-made.txt", data)

    return act


def _bare_patch(root: Path) -> Act:
    async def act(number: int) -> None:
        def work() -> None:
            old = "line 999\n" if number == 0 else f"line 999 v{number - 1}\n"
            text = (root / "bare.py").read_text()
            _replace(root / "bare.py", text.replace(old, f"line 999 v{number}\n", 1).encode())

        await asyncio.to_thread(work)

    return act


def _bare_list(root: Path) -> Act:
    async def act(_number: int) -> None:
        def work() -> None:
            with os.scandir(root / "many") as scan:
                [(entry.name, entry.stat().st_size) for entry in sorted(scan, key=lambda entry: entry.name)]

        await asyncio.to_thread(work)

    return act


def _replace(path: Path, data: bytes) -> None:
    draft = path.with_suffix(".draft")
    with draft.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    draft.rename(path)
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(directory)
    os.close(directory)


def rival(repetitions: int) -> dict[str, float]:
    """Medians in milliseconds of SWE-ReX running `true`: by name of its way to do so."""
    with tempfile.TemporaryDirectory(prefix="portside-bench-rival-") as made:
        venv.create(made, with_pip=True)
        python = str(Path(made) / "bin" / "python")
        subprocess.run([python, "-m", "pip", "install", "-qqq", _RIVAL], check=True)
        script = Path(__file__).with_name("swe_rex.py")
        done = subprocess.run(
            [python, str(script), str(repetitions)], check=True, capture_output=True, text=True
        )
        # Its log may come after the figures.
        return next(json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.local_tools", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=60)
    parser.add_argument("--swe-rex", action="store_true", help="compare command execution with SWE-ReX too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    given = parser.parse_args(arguments)
    found = asyncio.run(measure(given.repetitions))
    rivals = rival(given.repetitions) if given.swe_rex else {}
    for one in found:
        print(
            f"{one.name:<34} {one.tool_ms:8.2f} ms   {one.ratio:6.2f} x  {one.against} ({one.bare_ms:.2f} ms)"
        )
    for name, ms in rivals.items():
        ratio = found[0].tool_ms / ms
        print(f"{found[0].name:<34} {found[0].tool_ms:8.2f} ms   {ratio:6.2f} x  {name} ({ms:.2f} ms)")
    if given.json:
        written = {"python": sys.version, "figures": [asdict(one) for one in found], "rivals_ms": rivals}
        given.json.write_text(json.dumps(written, indent=2))


if __name__ == "__main__":
    main()

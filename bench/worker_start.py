"""`python -m bench.worker_start`: from a job's start to its first model request, in a real container.

Every repetition is a whole `portside run` with a scripted model, in one state directory; the times are those
of its timeline. Memory is the worker's resident set while its first command runs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

_LOOK = (
    "for p in /proc/[0-9]*; do "
    "case \"$(tr '\\0' ' ' <$p/cmdline)\" in python*'-m worker ') grep VmRSS $p/status;; esac; done"
)
_SCRIPT = {
    "turns": [
        {"call": [{"tool": "shell", "arguments": {"command": _LOOK}}]},
        {"call": [{"tool": "finish", "arguments": {"success": True, "summary": "done"}}]},
    ]
}


@dataclass(frozen=True, slots=True)
class Start:
    """One job's start.

    Attributes:
        container_ms: from the decision to start to the worker's first request.
        ready_ms: from there to the first model request: workspace, baseline, catalogue, context.
        resident_mb: of the worker.
    """

    container_ms: float
    ready_ms: float
    resident_mb: float


class RunFailed(Exception):
    """A job did not complete."""


def measure(repetitions: int) -> list[Start]:
    """One job after another; the first, which may build the image, is left out.

    Raises:
        RunFailed: a job did not complete; the message has the end of what was said.
    """
    with tempfile.TemporaryDirectory(prefix="portside-bench-") as made:
        script = Path(made) / "script.yaml"
        script.write_text(json.dumps(_SCRIPT))
        return [_one(Path(made), script) for _ in range(repetitions + 1)][1:]


def _one(place: Path, script: Path) -> Start:
    command = [sys.executable, "-m", "orchestrator.cli.main", "run", "measure", "--json"]
    done = subprocess.run(
        [*command, "--model", f"scripted:{script}"],
        env={**os.environ, "PORTSIDE_HOME": str(place / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RunFailed((done.stdout + done.stderr)[-2000:])
    events = [line["event"] for line in map(json.loads, done.stdout.splitlines()) if "event" in line]
    began = _at(events, "status", state="starting")
    registered = _at(events, "status", state="running")
    asked = _at(events, "contract")
    memory = next(
        re.search(r"VmRSS:\\t *(\d+) kB", str(one["data"].get("preview")))
        for one in events
        if one["type"] == "tool_result"
    )
    if memory is None:
        raise RunFailed("the worker's memory was not found")
    return Start(_ms(began, registered), _ms(registered, asked), int(memory[1]) / 1024)


def _at(events: Sequence[Mapping[str, Any]], kind: str, **data: str) -> datetime:
    found = next(one for one in events if one["type"] == kind and data.items() <= one["data"].items())
    return datetime.fromisoformat(found["at"])


def _ms(begin: datetime, end: datetime) -> float:
    return (end - begin).total_seconds() * 1000


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.worker_start", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    given = parser.parse_args(arguments)
    starts = measure(given.repetitions)
    for name in ("container_ms", "ready_ms", "resident_mb"):
        values = [getattr(one, name) for one in starts]
        print(f"{name:<14} median {statistics.median(values):8.1f}   least {min(values):8.1f}")
    if given.json:
        given.json.write_text(json.dumps([asdict(one) for one in starts], indent=2))


if __name__ == "__main__":
    main()

"""The benchmark in small: it starts every server, checks every answer, writes its figures (PD-16)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_small_run_measures_every_case_and_writes_json(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    small = ("--seconds", "0.05", "--repetitions", "1", "--callers", "2")
    run = subprocess.run(
        [sys.executable, "-m", "bench", "--json", file, *small],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    written = json.loads(file.read_text())
    assert [one["case"] for one in written["figures"]] == [
        "bare",
        "portside, read-only tool",
        "portside, tool with effects",
        "plain FastAPI route",
    ]
    assert all(one["callers"] == 2 and one["calls"] > 0 and one["cpu_us"] > 0 for one in written["figures"])
    assert written["figures"][0]["ratio"] == 1.0
    assert written["libraries"]["uvicorn"]


def test_a_small_run_of_mcp_calls_gives_a_ratio_for_each_number_of_callers(tmp_path: Path) -> None:
    file = tmp_path / "ratios.json"
    small = ("--seconds", "0.05", "--repetitions", "1", "--callers", "1", "3")
    run = subprocess.run(
        [sys.executable, "-m", "bench.mcp", "--json", file, *small],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    ratios = json.loads(file.read_text())["ratios"]
    assert list(ratios) == ["1", "3"]
    assert all(ratio > 0 for ratio in ratios.values())
    assert "through the registry" in run.stdout

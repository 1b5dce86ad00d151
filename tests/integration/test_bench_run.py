"""The benchmark in small: it starts every server, checks every answer, writes its figures (PD-16)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def bench(module: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """A benchmark that ran to its end."""
    run = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run


def test_the_registry_is_measured_against_plain_things(tmp_path: Path) -> None:
    """Ratios of one run: a check costs a small part of the reference's, a catalogue a few serialisations."""
    file = tmp_path / "costs.json"
    run = bench("bench", "--registry", "--json", file)
    ratios = {one["name"]: one["ratio"] for one in json.loads(file.read_text())["costs"]}
    assert list(ratios) == [
        "check of one call's arguments",
        "coercion of two texts",
        "registration of 1,000 tools",
        "registration of the same again",
        "their catalogue: filtered, hashed and written",
    ]
    assert ratios["check of one call's arguments"] < 0.1
    assert ratios["their catalogue: filtered, hashed and written"] < 10
    assert ratios["registration of the same again"] < ratios["registration of 1,000 tools"] / 5
    assert all(name in run.stdout for name in ratios)


def test_a_small_run_measures_every_case_and_writes_json(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    small = ("--seconds", "0.05", "--repetitions", "1", "--callers", "2")
    bench("bench", "--json", file, *small)
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


def test_a_small_run_of_the_local_tools_compares_each_with_the_bare_call(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    run = bench("bench.local_tools", "--repetitions", "2", "--json", file)
    figures = json.loads(file.read_text())["figures"]
    assert [one["name"].split()[0].strip(":,") for one in figures] == [
        "shell",
        "shell",
        "read_file",
        "write_file",
        "apply_patch",
        "list_dir",
    ]
    assert all(one["tool_ms"] > 0 and one["ratio"] == one["tool_ms"] / one["bare_ms"] for one in figures)
    assert len(run.stdout.splitlines()) == len(figures)


def test_a_small_run_of_mcp_calls_gives_a_ratio_for_each_number_of_callers(tmp_path: Path) -> None:
    file = tmp_path / "ratios.json"
    small = ("--seconds", "0.05", "--repetitions", "1", "--callers", "1", "3")
    run = bench("bench.mcp", "--json", file, *small)
    ratios = json.loads(file.read_text())["ratios"]
    assert list(ratios) == ["1", "3"]
    assert all(ratio > 0 for ratio in ratios.values())
    assert "through the registry" in run.stdout


def test_a_small_run_of_wasm_calls_gives_every_ratio_and_no_guest_leaves_memory_behind(
    tmp_path: Path,
) -> None:
    """PD-40: what a call takes is given back, whether it answers, is refused, traps or lifts options."""
    file = tmp_path / "ratios.json"
    small = ("--calls", "20", "--rounds", "1", "--memory-calls", "800")
    bench("bench.wasm", "--json", file, *small)
    found = json.loads(file.read_text())
    assert list(found["call_us"]) == [
        "export of a kept instance",
        "fresh instance",
        "tool, from the event loop",
        "tool, through the executor",
    ]
    assert all(took > 0 for took in found["call_us"].values())
    assert all(ratio > 0 for ratio in found["two_threads"].values())
    grown = {name: held["ratio"] for name, held in found["memory"].items()}
    assert list(grown) == ["echo", "asks", "traps", "half"]
    assert max(grown.values()) < 1.05, "a store that is kept makes it several times as much"


def test_a_small_run_of_messages_gives_both_ratios(tmp_path: Path) -> None:
    """PD-65: the sweep is measured with few and with many waiting tasks."""
    file = tmp_path / "costs.json"
    small = ("--databases", "sqlite", "--trips", "2", "--rounds", "1", "--few", "100", "--many", "200")
    bench("bench.network", "--json", file, *small)
    (costs,) = json.loads(file.read_text())["costs"]
    assert costs["database"] == "sqlite"
    assert costs["ratio"] == costs["trip_ms"] / costs["bare_ms"]
    assert costs["sweep"] == costs["sweep_many_ms"] / costs["sweep_few_ms"]

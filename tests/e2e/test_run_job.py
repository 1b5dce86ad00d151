"""A real coding job through every layer: command line, orchestrator, container, tools, diff (HW-1, HW-2, HW-5, DC-1, DC-2, DC-3)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import ROOT, CommandLine

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.timeout(300)]

CALCULATOR = ROOT / "examples" / "broken-calculator"
SCRIPT = ROOT / "examples" / "scripts" / "broken-calculator.yaml"


def _events(lines: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [one["event"]["data"] for one in lines if "event" in one and one["event"]["type"] == kind]


def test_a_job_repairs_a_repository_with_every_kind_of_tool(
    command_line: CommandLine, tmp_path: Path
) -> None:
    """One MCP, one WASM and two network calls, all five local tools, and a rejected call repaired."""
    command_line.add_mcp("notes", sys.executable, str(ROOT / "examples" / "mcp-notes" / "server.py"))
    command_line.add_wasm(ROOT / "wasm_tools" / "guests" / "calc" / "calc.wasm")

    ran = command_line.run(
        "run",
        "Repair the failing test in this repository",
        "--workspace",
        str(CALCULATOR),
        "--model",
        f"scripted:{SCRIPT}",
        "--json",
        timeout_s=240,
    )

    assert ran.exit_code == 0, ran.out[-2000:] + ran.err
    job, diff = ran.lines[-1]["job"], ran.lines[-1]["diff"]
    assert job["state"] == "completed"
    results = [(one["tool_name"], one["verdict"]) for one in _events(ran.lines, "tool_result")]
    # The first two were asked for in one turn and run side by side: either may be done first.
    assert sorted(results[:2]) + results[2:] == [
        ("list_dir", "ok"),
        ("read_file", "ok"),
        ("notes_search", "invalid_params"),
        ("notes_search", "ok"),
        ("network_claim", "ok"),
        ("shell", "ok"),
        ("calc", "ok"),
        ("apply_patch", "ok"),
        ("write_file", "ok"),
        ("shell", "ok"),
        ("network_release", "ok"),
        ("finish", "ok"),
    ]
    assert {one["tool_name"]: one["source"] for one in _events(ran.lines, "tool_use")} == {
        "notes_search": "mcp",
        "calc": "wasm",
        "network_claim": "network",
        "network_release": "network",
        **dict.fromkeys(("list_dir", "read_file", "shell", "apply_patch", "write_file", "finish"), "local"),
    }
    (contract,) = _events(ran.lines, "contract")
    assert contract["identical"]
    assert contract["catalog_hash"] == contract["request_hash"]
    _check_diff(diff, tmp_path)


def _check_diff(diff: str, tmp_path: Path) -> None:
    """The diff applies to a fresh copy, and the copy's tests pass with it and fail without."""
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", str(CALCULATOR), str(copy)], check=True)
    tests = [sys.executable, "-B", "-m", "unittest"]
    assert subprocess.run(tests, cwd=copy, capture_output=True, check=False).returncode != 0
    applied = subprocess.run(
        ["git", "apply", "-"], input=diff, text=True, cwd=copy, capture_output=True, check=False
    )
    assert applied.returncode == 0, applied.stderr
    assert subprocess.run(tests, cwd=copy, capture_output=True, check=False).returncode == 0
    assert (copy / "CHANGES.md").exists()
    assert "__pycache__" not in diff

"""PD-51: a job's changes come back into a checkout that has moved on, on a machine without git too."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import CommandLine

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.timeout(300)]

LINES = "".join(f"line {number}\n" for number in range(30))
EDITS = r"""
turns:
  - call: [{tool: shell, arguments: {command: "sed -i 's/line 3$/LINE 3/' a.txt; printf made > made; rm gone"}}]
  - call: [{tool: finish, arguments: {success: true, summary: done}}]
"""


def test_without_git_changes_are_checked_merged_and_refused_whole(
    command_line: CommandLine, tmp_path: Path
) -> None:
    no_git = {**command_line.environment, "PATH": str(tmp_path / "nothing")}
    command_line = replace(command_line, environment=no_git)
    workspace = tmp_path / "w"
    workspace.mkdir()
    (workspace / "a.txt").write_text(LINES)
    (workspace / "gone").write_text("gone\n")
    script = tmp_path / "edits.yaml"
    script.write_text(EDITS)
    ran = command_line.run(
        "run", "x", "--workspace", str(workspace), "--model", f"scripted:{script}", "--json"
    )
    assert ran.exit_code == 0, ran.out + ran.err
    job_id = ran.lines[-1]["job"]["id"]

    def apply(*more: str) -> Any:
        done = command_line.run("jobs", "apply", job_id, "--workspace", str(workspace), "--json", *more)
        return json.loads(done.out) if done.exit_code == 0 else done.err

    (workspace / "gone").write_text("mine\n")
    assert "gone: changed here since the job began" in apply()
    (workspace / "gone").write_text("gone\n")
    (workspace / "a.txt").write_text(LINES.replace("line 5\n", "mine\n"))
    checked = apply("--check")
    assert (checked["check"], checked["merged"], (workspace / "gone").exists()) == (True, ["a.txt"], True)
    assert apply() == {**checked, "check": False}
    expected = LINES.replace("line 5\n", "mine\n").replace("line 3\n", "LINE 3\n")
    assert {path.name: path.read_text() for path in workspace.iterdir()} == {
        "a.txt": expected,
        "made": "made",
    }
    assert apply()["changed"] is False
    assert command_line.containers("io.portside.apply") == []

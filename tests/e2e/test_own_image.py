"""A whole job in an image that its user brought, which has neither Python nor bash (PD-33)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import CommandLine

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.timeout(300)]

PATCH = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+uno\n*** End Patch\n"
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("shell", {"command": 'echo "$0|$GREETING|$PATH|$PYTHONHOME|$(id -u)"; touch made'}),
    ("shell", {"command": "python3 --version"}),
    ("read_file", {"path": "a.txt"}),
    ("write_file", {"path": "b.txt", "content": "two\n"}),
    ("apply_patch", {"patch": PATCH}),
    ("list_dir", {"path": "."}),
    ("finish", {"success": True, "summary": "done"}),
)


def test_a_job_does_its_work_in_a_bare_image(
    command_line: CommandLine, bare_image: str, tmp_path: Path
) -> None:
    """Shell, file tools and diff; commands have the image's variables."""
    workspace = tmp_path / "w"
    workspace.mkdir()
    (workspace / "a.txt").write_text("one\n")
    script = tmp_path / "script.yaml"
    script.write_text(json.dumps({"turns": [{"call": [{"tool": t, "arguments": a}]} for t, a in CALLS]}))

    ran = command_line.run(
        *("run", "work", "--workspace", str(workspace), "--image", bare_image),
        *("--model", f"scripted:{script}", "--json"),
        timeout_s=240,
    )

    assert ran.exit_code == 0, ran.out[-2000:] + ran.err
    job, diff = ran.lines[-1]["job"], ran.lines[-1]["diff"]
    assert (job["state"], job["image"]) == ("completed", bare_image)
    events = [
        line["event"]["data"] for line in ran.lines if line.get("event", {}).get("type") == "tool_result"
    ]
    assert [one["verdict"] for one in events] == ["ok", "error", *["ok"] * (len(CALLS) - 2)]
    first, second = (json.loads(one["preview"]) for one in events[:2])
    assert first["stdout"] == "/bin/sh|hello from the image|/opt/tools:/bin|/opt/tools|1000\n"
    assert second["exit_code"] == 127  # the brought Python is the worker's alone
    assert all(change in diff for change in ("-one\n+uno\n", "+++ b/b.txt\n", "b/made"))

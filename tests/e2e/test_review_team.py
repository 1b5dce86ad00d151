"""PD-66: a developer and a reviewer in two containers discover, delegate, claim, ask, reply and finish (PD-61, PD-64)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import ROOT, CommandLine

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.timeout(400)]


def shown(command_line: CommandLine, *arguments: str) -> Any:
    done = command_line.run(*arguments, "--json")
    assert done.exit_code == 0, done.err
    return json.loads(done.out)


def run_in(command_line: CommandLine) -> subprocess.CompletedProcess[str]:
    """The example's own command, in a state directory."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [str(ROOT / "examples" / "review-team" / "run")],
        capture_output=True,
        text=True,
        timeout=360,
        check=False,
        env={
            **kept,
            **command_line.environment,
            "PORTSIDE_HOME": str(command_line.home),
            "PORTSIDE": str(Path(sys.executable).parent / "portside"),
        },
    )


def test_a_state_directory_in_use_keeps_its_agents(command_line: CommandLine) -> None:
    command_line.home.mkdir(mode=0o700)
    (command_line.home / "agents.yaml").write_text("mine")
    ran = run_in(command_line)
    assert (ran.returncode, "is in use" in ran.stderr) == (1, True)
    assert (command_line.home / "agents.yaml").read_text() == "mine"


def test_a_developer_and_a_reviewer_work_in_two_containers(command_line: CommandLine) -> None:
    command_line.home.mkdir(mode=0o700)
    ran = run_in(command_line)
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-2000:]

    jobs = {one["agent"]: one for one in shown(command_line, "jobs", "list")}
    assert {name: one["state"] for name, one in jobs.items()} == {
        "developer": "completed",
        "reviewer": "completed",
    }
    (task,) = shown(command_line, "network", "tasks")
    detail = shown(command_line, "network", "task", task["task_id"])
    states = [one["state"] for one in detail["history"]]
    assert [one for index, one in enumerate(states) if states[index - 1 : index] != [one]] == [
        *("pending", "offered", "accepted", "working", "completed")
    ]
    assert f"is being started for it: job {jobs['reviewer']['id']}" in detail["history"][1]["reason"]
    assert [one["type"] for one in detail["artifacts"]] == ["test_report"]

    calls = {
        name: [
            (one["tool_name"], one["verdict"])
            for one in shown(command_line, "jobs", "show", job["id"])["calls"]
            if one["tool_name"] != "network_inbox"
        ]
        for name, job in jobs.items()
    }
    assert {("network_discover", "ok"), ("network_delegate", "ok"), ("network_reply", "ok")} <= set(
        calls["developer"]
    )
    assert ("network_claim", "error") in calls["reviewer"]
    threads = shown(command_line, "network", "threads")
    said = [
        (one["kind"], one["sender"])
        for thread in threads
        for one in shown(command_line, "network", "thread", thread["thread_id"])["messages"]
    ]
    assert sorted(said) == [("ask", "reviewer"), ("reply", "developer"), ("status", "reviewer")]
    assert shown(command_line, "network", "claims") == []
    assert "3 messages in 2 threads are as the hub took them" in ran.stdout
    assert "amount - amount * percent" in ran.stdout

"""DC-3, PD-8: how real jobs in real containers end: out of memory, cancelled, and beyond a kill -9."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_line import CommandLine
from tests.support.service import ended, serving

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.timeout(300)]

# What lies in /tmp counts as memory and belongs to no process. Its writer and that one's supervisor give up their
# place as the first to be killed, so the kernel takes the largest: the worker.
FILLS = """
turns:
  - call:
      - tool: shell
        arguments:
          command: >
            echo half > half.txt;
            for one in self $PPID; do echo 0 > /proc/$one/oom_score_adj; done;
            head -c 400M /dev/zero > /tmp/fill
  - call: [{tool: finish, arguments: {success: true, summary: survived}}]
"""
WAITS = """
turns:
  - call: [{tool: shell, arguments: {command: "echo half > half.txt; sleep 200", timeout_s: 250}}]
  - say: Done.
"""
SPENDS = """
turns:
  - usage: {input_tokens: 60, output_tokens: 10}
    say: First half.
    call: [{tool: write_file, arguments: {path: half.txt, content: "half\\n"}}]
  - usage: {input_tokens: 60, output_tokens: 10}
    say: Second half.
    call: [{tool: write_file, arguments: {path: whole.txt, content: "whole\\n"}}]
  - usage: {input_tokens: 60, output_tokens: 10}
    call: [{tool: write_file, arguments: {path: more.txt, content: "more\\n"}}]
"""
# The command ends the worker that it runs under.
CRASHES = """
turns:
  - call:
      - tool: shell
        arguments:
          command: >-
            mkdir new; echo half > new/half.txt; rm gone.txt; ln -s /etc/shadow link; mkfifo pipe; git init -q;
            for p in /proc/[0-9]*; do case "$(tr '\\0' ' ' <$p/cmdline)" in
            python*'-m worker ') kill -SIGNAL $${p#/proc/};; esac; done; sleep 30
"""
RECOVERED = [
    *("diff --git a/gone.txt b/gone.txt", "--- a/gone.txt", "+++ /dev/null", "-gone"),
    *("diff --git a/link b/link", "--- /dev/null", "+++ b/link", "+/etc/shadow"),
    *("diff --git a/new/half.txt b/new/half.txt", "--- /dev/null", "+++ b/new/half.txt", "+half"),
]
GOES_ON = """
turns:
  - call: [{tool: write_file, arguments: {path: before.txt, content: "before\\n"}}]
  - delay_s: 4
    call: [{tool: write_file, arguments: {path: after.txt, content: "after\\n"}}]
  - call: [{tool: finish, arguments: {success: true, summary: went on}}]
"""


def script(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "script.yaml"
    file.write_text(text)
    return file


def test_a_job_outlives_the_kill_of_its_orchestrator(command_line: CommandLine, tmp_path: Path) -> None:
    """BR-098: kill -9 in the middle of a model request; the next run adopts the container and the job goes on."""
    with serving(command_line) as service:
        job_id = service.run(script(tmp_path, GOES_ON))
        service.until(job_id, lambda _: len(service.events(job_id, "tool_result")) == 1)
        service.kill()
        service.start()
        job = service.until(job_id, ended)
        assert (job["state"], job["attempt"]) == ("completed", 1)
        verdicts = [(one["tool_name"], one["verdict"]) for one in service.events(job_id, "tool_result")]
        assert verdicts == [("write_file", "ok"), ("write_file", "ok"), ("finish", "ok")]
        diff = service.ask("GET", f"jobs/{job_id}/diff")
        assert "+before" in diff
        assert "+after" in diff


def test_a_cancelled_job_ends_its_command_and_keeps_its_changes(
    command_line: CommandLine, tmp_path: Path
) -> None:
    """BR-108: cancelled once nothing runs, well before the command would have ended."""
    with serving(command_line) as service:
        job_id = service.run(script(tmp_path, WAITS))
        service.until(job_id, lambda _: bool(service.events(job_id, "tool_use")))
        service.ask("POST", f"jobs/{job_id}/cancel")
        job = service.until(job_id, ended, within_s=40)
        assert (job["state"], job["reason"]) == ("cancelled", "cancelled by the operator")
        assert "+half" in service.ask("GET", f"jobs/{job_id}/diff")


def test_a_job_that_outgrows_its_memory_says_so(command_line: CommandLine, tmp_path: Path) -> None:
    """BR-105 (a): named with its limit, and not started again."""
    with serving(command_line) as service:
        job_id = service.run(script(tmp_path, FILLS), memory_bytes=128 * 2**20)
        job = service.until(job_id, ended)
        reason = "out of memory (limit 128 MiB); its changes were recovered"
        assert (job["state"], job["reason"], job["attempt"]) == ("failed", reason, 1)
        assert "+half" in service.ask("GET", f"jobs/{job_id}/diff")


def test_a_job_that_has_spent_its_tokens_keeps_what_it_did(command_line: CommandLine, tmp_path: Path) -> None:
    """PD-17: the reason names the budget, and the diff has the work up to then."""
    with serving(command_line) as service:
        job_id = service.run(script(tmp_path, SPENDS), max_tokens=100)
        job = service.until(job_id, ended)
        assert (job["state"], job["tokens_used"], job["model_requests"]) == ("failed", 140, 2)
        assert job["reason"] == "limit reached: the limit of 100 tokens was reached (140 used)"
        assert job["message"] == "Second half."
        diff = service.ask("GET", f"jobs/{job_id}/diff")
        assert "+half" in diff
        assert "+whole" in diff
        assert "more" not in diff


@pytest.mark.parametrize(
    ("signal", "reason"),
    [
        ("ABRT", "worker was killed by SIGABRT without a report"),
        ("KILL", "killed (SIGKILL), not by its memory limit"),
    ],
)
def test_a_job_whose_worker_crashes_ends_with_the_signal_s_name(
    command_line: CommandLine, tmp_path: Path, signal: str, reason: str
) -> None:
    """PD-8: whatever the command does to the worker, the terminal state comes, at once and in the timeline.

    PD-50: and the changes come out of its container, of which nothing is left.
    """
    with serving(command_line) as service:
        workspace = service.upload(**{"gone.txt": "gone\n", "same.txt": "same\n"})
        crashes = script(tmp_path, CRASHES.replace("SIGNAL", signal))
        job_id = service.run(crashes, workspace_sha256=workspace)
        job = service.until(job_id, ended, within_s=60)
        assert (job["state"], job["reason"]) == ("failed", f"{reason}; its changes were recovered")
        service.until(job_id, lambda _: service.events(job_id, "status")[-1]["state"] == "failed")
        assert service.events(job_id, "status")[-1]["message"] == job["reason"]
        diff = service.ask("GET", f"jobs/{job_id}/diff")
        assert [line for line in diff.splitlines() if line.startswith(("+", "-", "diff"))] == RECOVERED
    assert command_line.containers() == []

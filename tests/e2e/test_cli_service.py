"""A service and its clients: run --detach, attach, cancel, diff, apply; one orchestrator a home (PD-14)."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import CommandLine
from tests.support.outside import connected

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.timeout(300)]

WRITES = """
turns:
  - call: [{tool: write_file, arguments: {path: made.txt, content: "made\\n"}}]
  - call: [{tool: finish, arguments: {success: true, summary: done}}]
"""
PAUSES = """
turns:
  - call: [{tool: shell, arguments: {command: "sleep 6"}}]
  - call: [{tool: finish, arguments: {success: true, summary: done}}]
"""
WAITS = """
turns:
  - call: [{tool: shell, arguments: {command: "sleep 200", timeout_s: 250}}]
  - say: Done.
"""


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    (tmp_path / "writes.yaml").write_text(WRITES)
    (tmp_path / "waits.yaml").write_text(WAITS)
    (tmp_path / "pauses.yaml").write_text(PAUSES)
    return tmp_path


@contextmanager
def serving(command_line: CommandLine) -> Generator[subprocess.Popen[str]]:
    """A service that listens; it has to end cleanly."""
    process = command_line.start("serve", "--json")
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        listening = process.stdout.readline()
        assert json.loads(listening or "{}") == {"listening": str(command_line.home / "api.sock")}
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        log = process.communicate(timeout=60)[1]
    assert process.returncode == 0, log
    assert all(json.loads(line) for line in log.splitlines())


def read(command_line: CommandLine, *arguments: str) -> Any:
    ran = command_line.run(*arguments, "--json")
    assert ran.exit_code == 0, ran.out + ran.err
    return json.loads(ran.out)


def test_a_service_takes_jobs_and_commands_and_ends_on_sigterm(
    command_line: CommandLine, scripts: Path
) -> None:
    with serving(command_line):
        model = f"scripted:{scripts / 'writes.yaml'}"
        ran = command_line.run("run", "write", "--title", "The job", "--model", model, "--json")
        assert ran.exit_code == 0, ran.out + ran.err
        job_id = ran.lines[-1]["job"]["id"]
        (listed,) = read(command_line, "jobs", "list", "--state", "completed")
        assert (listed["id"], listed["title"]) == (job_id, "The job")
        assert read(command_line, "jobs", "list", "--state", "failed") == []
    # What was done is there without a service, and looking at it starts none.
    shown = read(command_line, "jobs", "show", job_id[-6:])
    assert [(one["tool_name"], one["first_call"], one["verdict"]) for one in shown["calls"]] == [
        ("write_file", True, "ok"),
        ("finish", True, "ok"),
    ]
    assert not (command_line.home / "api.sock").exists()


def test_a_second_service_on_a_home_is_refused(command_line: CommandLine) -> None:
    """BR-135: two orchestrators on one state directory never both look after its jobs."""
    with serving(command_line) as first:
        second = command_line.run("serve")
        assert second.exit_code == 1
        assert "answers on" in second.err
        (command_line.home / "api.sock").rename(command_line.home / "hidden.sock")
        third = command_line.run("serve")
        assert third.exit_code == 1
        assert f"another orchestrator (process {first.pid}) looks after" in third.err
        (command_line.home / "hidden.sock").rename(command_line.home / "api.sock")


def test_a_detached_job_goes_on_and_its_diff_is_applied_later(
    command_line: CommandLine, scripts: Path, tmp_path: Path
) -> None:
    workspace = tmp_path / "w"
    workspace.mkdir()
    (workspace / "a.txt").write_text("a\n")
    model = f"scripted:{scripts / 'writes.yaml'}"
    started = read(command_line, "run", "x", "--workspace", str(workspace), "--model", model, "--detach")
    try:
        job_id = started["job"]["id"]
        attached = command_line.run("jobs", "attach", job_id, "--json")
        assert attached.exit_code == 0, attached.out + attached.err
        assert attached.lines[0]["event"]["data"]["state"] == "queued"
        assert attached.lines[-1]["job"]["state"] == "completed"
        diff = command_line.run("jobs", "diff", job_id)
        assert "+++ b/made.txt\n" in diff.out
        applied = read(command_line, "jobs", "apply", job_id, "--workspace", str(workspace))
        assert applied["changed"]
        assert (workspace / "made.txt").read_text() == "made\n"
        again = command_line.run("jobs", "apply", job_id, "--workspace", str(workspace))
        assert (again.exit_code, again.out.strip()) == (
            0,
            f"{workspace} has all of the job's changes already",
        )
        assert read(command_line, "jobs", "rm", job_id) == {"removed": [job_id]}
        assert read(command_line, "jobs", "list") == []
    finally:
        stop(started["stop"])


def test_a_representative_wakes_and_restarts_an_agent_and_the_operator_cancels_it(
    command_line: CommandLine, scripts: Path
) -> None:
    """PD-44: each in a container; a cancelled job ends with its container, and refuses prompts."""
    with serving(command_line):
        added = ("agents", "add", "builder", "--model", f"scripted:{scripts / 'waits.yaml'}")
        assert command_line.run(*added).exit_code == 0
        assert command_line.run("representatives", "add", "rita").exit_code == 0
        granted = command_line.run("representatives", "grant", "rita", "local", "observe", "operate")
        assert granted.exit_code == 0, granted.err
        rita = Controls(command_line, read(command_line, "representatives", "token", "rita")["token"])

        woken = rita("control_wake_agent", networkId="local", toAgent="builder")
        assert (woken["how"], woken["launched"]) == ("launched", True)
        first = attached(command_line, woken["job_id"])
        again = rita("control_wake_agent", networkId="local", toAgent="builder")
        assert (again["how"], again["job_id"]) == ("prompted", woken["job_id"])

        restart = {"networkId": "local", "instanceId": woken["instance_id"]}
        asked = rita("control_restart_agent", **restart)
        read(command_line, "network", "confirm", asked["confirmation_id"])
        done = rita("control_restart_agent", **restart, confirmationId=asked["confirmation_id"])
        first.communicate(timeout=60)
        assert first.returncode == 3
        (old,) = read(command_line, "jobs", "list", "--state", "cancelled")
        assert (old["id"], old["reason"]) == (woken["job_id"], "restarted by rita for operator")
        job_id = done["job_id"]
        second = attached(command_line, job_id)
        (container,) = command_line.containers()
        assert job_id in container

        left = attached(command_line, job_id)
        left.send_signal(signal.SIGTERM)  # whoever only looks on takes nothing along
        _, said = left.communicate(timeout=60)
        back = f"the job goes on; come back with: portside jobs attach {job_id}"
        assert (left.returncode, back in said) == (0, True)

        busy = command_line.run("jobs", "rm", job_id)
        assert (busy.exit_code, "cancel it first" in busy.err) == (1, True)
        cancelled = read(command_line, "jobs", "cancel", job_id, "--wait")
        assert cancelled["state"] == "cancelled"
        second.communicate(timeout=60)
        assert second.returncode == 3
        late = command_line.run("jobs", "prompt", job_id, "hello")
        assert (late.exit_code, "the job is cancelled" in late.err) == (1, True)
        assert command_line.containers() == []


@dataclass
class Controls:
    """A representative over MCP, on the orchestrator's own socket."""

    command_line: CommandLine
    token: str

    def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        async def call() -> dict[str, Any]:
            socket = self.command_line.home / "api.sock"
            async with connected("http://portside", self.token, "/mcp/control", socket=socket) as client:
                return await client(tool, **arguments)

        return asyncio.run(call())


def attached(command_line: CommandLine, job_id: str) -> subprocess.Popen[str]:
    """A command that follows a job, which has called its first tool by now."""
    watching = command_line.start("jobs", "attach", job_id, "--json")
    until_event(watching, "tool_use")
    return watching


def test_an_interrupt_without_a_terminal_cancels_the_job(command_line: CommandLine, scripts: Path) -> None:
    model = f"scripted:{scripts / 'waits.yaml'}"
    running = command_line.start("run", "x", "--model", model, "--json")
    until_event(running, "tool_use")
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 3, err
    assert json.loads(out.splitlines()[-1])["job"]["state"] == "cancelled"
    assert "cancelling the job" in err


def test_at_a_terminal_an_interrupt_asks_and_a_second_one_cancels(
    command_line: CommandLine, scripts: Path
) -> None:
    model = f"scripted:{scripts / 'waits.yaml'}"
    with at_terminal(command_line, "run", "x", "--model", model) as terminal:
        terminal.wait_for("sleep 200")
        terminal.type("\x03")
        terminal.wait_for("The job needs this command")
        terminal.wait_for("or Enter to go on: ")
        terminal.type("\n")
        terminal.wait_for("watching on")
        terminal.type("\x03")
        terminal.wait_for("or Enter to go on: ")
        terminal.type("\x03")
        terminal.wait_for("cancelling the job")
        terminal.wait_for("cancelled: cancelled by the operator")
        assert terminal.process.wait(60) == 3


def test_at_a_terminal_a_services_job_can_be_left_alone(command_line: CommandLine, scripts: Path) -> None:
    model = f"scripted:{scripts / 'waits.yaml'}"
    with serving(command_line):
        with at_terminal(command_line, "run", "x", "--model", model) as terminal:
            terminal.wait_for("sleep 200")
            terminal.type("\x03")
            terminal.wait_for("[d]etach and let it go on, or Enter to watch on: ")
            terminal.type("d\n")
            terminal.wait_for("the job goes on")
            assert terminal.process.wait(60) == 0
        (job,) = read(command_line, "jobs", "list")
        assert job["state"] == "running"
        assert read(command_line, "jobs", "cancel", job["id"], "--wait")["state"] == "cancelled"


def test_a_job_outlives_the_command_whose_orchestrator_it_used(
    command_line: CommandLine, scripts: Path
) -> None:
    """A `run` that used another command's embedded orchestrator takes over when that one is killed."""
    first = command_line.start("run", "x", "--model", f"scripted:{scripts / 'waits.yaml'}", "--json")
    until_event(first, "tool_use")
    second = command_line.start("run", "y", "--model", f"scripted:{scripts / 'waits.yaml'}", "--json")
    until_event(second, "tool_use")
    first.kill()
    first.communicate()
    second.send_signal(signal.SIGINT)  # asks the orchestrator that is there by then to cancel
    out, err = second.communicate(timeout=120)
    assert second.returncode == 3, out + err
    assert json.loads(out.splitlines()[-1])["job"]["state"] == "cancelled"
    for job in read(command_line, "jobs", "list", "--state", "running"):
        assert read(command_line, "jobs", "cancel", job["id"], "--wait")["state"] == "cancelled"


class Terminal:
    """A command at a pseudo-terminal."""

    def __init__(self, process: subprocess.Popen[bytes], end: int) -> None:
        self.process = process
        self._end = end
        self._seen = ""

    def type(self, keys: str) -> None:
        os.write(self._end, keys.encode())

    def wait_for(self, text: str) -> None:
        """Read until `text` is there; what came before it counts as seen."""
        while text not in self._seen:
            assert select.select([self._end], [], [], 60)[0], f"no {text!r} in {self._seen!r}"
            try:
                self._seen += os.read(self._end, 65536).decode(errors="replace")
            except OSError:
                pytest.fail(f"the command ended without {text!r}: {self._seen!r}")
        self._seen = self._seen.partition(text)[2]


@contextmanager
def at_terminal(command_line: CommandLine, *arguments: str) -> Generator[Terminal]:
    """Start a command at a terminal of its own."""
    end, their_end = pty.openpty()
    process = command_line.start_at_terminal(their_end, *arguments)
    os.close(their_end)
    try:
        yield Terminal(process, end)
    finally:
        process.kill()
        process.wait()
        os.close(end)


def until_event(process: subprocess.Popen[str], kind: str) -> None:
    """Read a command's JSON stream up to the first event of a kind."""
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line)["event"]["type"] == kind:
            return
    pytest.fail(f"the command ended without {kind}")


def stop(command: str) -> None:
    """What the command line prints to end its service, typed."""
    pid = int(command.removeprefix("kill "))
    os.kill(pid, signal.SIGTERM)
    deadline_s = time.monotonic() + 60
    while Path(f"/proc/{pid}/stat").exists():
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            return
        assert time.monotonic() < deadline_s, "the service did not end"
        os.sched_yield()


def test_a_timeline_is_followed_and_goes_on_without_a_gap_over_a_restart(
    command_line: CommandLine, scripts: Path
) -> None:
    """BR-098, BR-107: `logs --follow` and `attach` show the same, from the first event to the last."""
    model = f"scripted:{scripts / 'pauses.yaml'}"
    with serving(command_line):
        job_id = read(command_line, "run", "wait", "--model", model, "--detach")["job"]["id"]
        follower = command_line.start("jobs", "logs", job_id, "--follow", "--json")
        assert follower.stdout is not None
        while '"tool_use"' not in (line := follower.stdout.readline()):
            assert line
        before = _timeline(command_line, job_id)
        follower.kill()
        follower.communicate()
    with serving(command_line):
        attached = command_line.run("jobs", "attach", job_id, "--json")
        assert attached.exit_code == 0, attached.out + attached.err
        whole = [line["event"] for line in attached.lines if "event" in line]
    assert [event["position"] for event in whole] == list(range(1, len(whole) + 1))
    assert whole[: len(before)] == before
    assert whole[-1]["data"]["state"] == "completed"
    assert _timeline(command_line, job_id) == whole


def _timeline(command_line: CommandLine, job_id: str) -> list[Any]:
    ran = command_line.run("jobs", "logs", job_id, "--json")
    assert ran.exit_code == 0, ran.out + ran.err
    return [line["event"] for line in ran.lines]

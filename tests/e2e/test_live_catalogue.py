"""Tools come, change and go while a job runs in a container (HW-4, DC-1, DC-2, BR-054, BR-142)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import mcp_servers as fakes
from tests.support.command_line import ROOT, CommandLine

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.timeout(300)]

CALC = ROOT / "wasm_tools" / "guests" / "calc" / "calc.wasm"
SCRIPT = """
turns:
  - expect:
      tools: [gate_hold, doomed_echo, changing_login, shell]
      tools_absent: [calc, added_echo, changing_search, extra_echo]
      system_messages: 2
      messages_contain: ask me first
    call:
      - {tool: gate_hold}
      - {tool: doomed_echo, arguments: {text: are you there}}
  - expect:
      tools: [calc, added_echo, gate_hold, changing_login]
      tools_absent: [doomed_echo]
      system_messages: 2
      last_tool_result:
        - {tool: gate_hold, is_error: false}
        - {tool: doomed_echo, is_error: true, contains: [doomed_echo, tool_not_found]}
    call:
      - {tool: calc, arguments: {expression: 6 * 7}}
      - {tool: added_echo, arguments: {text: new here}}
      - {tool: doomed_echo}
      - {tool: changing_login}
      - {tool: gate_hold}
  - expect:
      tools: [changing_search, extra_echo]
      tools_absent: [calc, changing_login, doomed_echo]
      system_messages: 2
      last_tool_result:
        - {tool: calc, is_error: false, contains: "42"}
        - {tool: added_echo, is_error: false, contains: new here}
        - {tool: doomed_echo, is_error: true, contains: "no tool named"}
        - {tool: changing_login, is_error: false}
    call:
      - {tool: extra_echo, arguments: {text: by the command line}}
      - {tool: changing_search}
  - expect:
      last_tool_result:
        - {tool: extra_echo, is_error: false, contains: by the command line}
        - {tool: changing_search, is_error: false}
    call:
      - {tool: finish, arguments: {success: true, summary: seen it all}}
"""


def test_a_running_job_sees_tools_come_and_go(command_line: CommandLine, tmp_path: Path) -> None:
    """By file, by `listChanged` and by command; a call to a tool that is gone says so, and the job goes on."""
    gates = tmp_path / "gate-1", tmp_path / "gate-2"
    for gate in gates:
        os.mkfifo(gate)
    servers = {
        "gate": fakes.command(fakes.Holding, *map(str, gates)),
        "doomed": fakes.command(fakes.Server),
        "changing": fakes.command(fakes.Changing),
        "guide": fakes.command(fakes.Instructing),
    }
    _write(command_line, servers)
    script = tmp_path / "script.yaml"
    script.write_text(SCRIPT)
    (tmp_path / "work").mkdir()

    job = command_line.start(
        "run",
        "Look",
        "--workspace",
        str(tmp_path / "work"),
        "--model",
        f"scripted:{script}",
        "--json",
    )
    try:
        out, err = _steer(command_line, job, gates, servers)
    finally:
        job.kill()
        job.wait(10)
    assert job.returncode == 0, out[-3000:] + err[-2000:]
    assert json.loads(out.splitlines()[-1])["job"]["state"] == "completed"


def _steer(
    command_line: CommandLine, job: subprocess.Popen[str], gates: Sequence[Path], servers: Mapping[str, Any]
) -> tuple[str, str]:
    kept = {name: entry for name, entry in servers.items() if name != "doomed"}
    with _held(gates[0], job):
        shutil.copy(CALC, command_line.home / "tools")
        _write(command_line, {**kept, "added": fakes.command(fakes.Server)})
        _listed(command_line, present={"calc", "added_echo"}, absent={"doomed_echo"})
    with _held(gates[1], job):
        entry = fakes.command(fakes.Server)
        added = command_line.run("mcp", "add", "extra", "--", entry["command"], *entry["args"])
        assert added.exit_code == 0, added.err
        removed = command_line.run("tools", "remove", "calc")
        assert removed.exit_code == 0, removed.err
        _listed(command_line, present={"extra_echo", "changing_search"}, absent={"calc", "changing_login"})
    return job.communicate(timeout=100)


@contextmanager
def _held(gate: Path, job: subprocess.Popen[str]) -> Generator[None]:
    """While a call is held at the gate; leaving lets it go."""
    handle = _reader_of(gate, job)
    try:
        yield
    finally:
        os.close(handle)


def _reader_of(gate: Path, job: subprocess.Popen[str]) -> int:
    """The gate, open for writing as soon as somebody reads it."""
    deadline = time.monotonic() + 120
    while True:
        try:
            return os.open(gate, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody reads yet
            assert time.monotonic() < deadline
        with suppress(subprocess.TimeoutExpired):
            job.wait(0.05)
            raise AssertionError(job.communicate())


def _write(command_line: CommandLine, servers: Mapping[str, Any]) -> None:
    command_line.home.mkdir(exist_ok=True, mode=0o700)
    draft = command_line.home / "mcp.edited"
    draft.write_text(json.dumps({"mcpServers": servers}))
    draft.replace(command_line.home / "mcp.json")


def _listed(command_line: CommandLine, *, present: Collection[str], absent: Collection[str]) -> None:
    """Wait until the registry is like that."""
    deadline = time.monotonic() + 60
    names: set[str] = set()
    while not set(present) <= names or set(absent) & names:
        assert time.monotonic() < deadline, names
        ran = command_line.run("tools", "list", "--json")
        assert ran.exit_code == 0, ran.err
        names = {tool["name"] for tool in json.loads(ran.out)}

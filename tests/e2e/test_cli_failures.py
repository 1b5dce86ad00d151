"""What can't be done: one line that says why and what to do, and the right exit code (PD-14)."""

from __future__ import annotations

import json
import socket
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.mcp_servers import PROGRAM
from tests.support.command_line import ROOT, CommandLine, Ran
from tests.support.egress import squid_or_skip

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.timeout(200)]

SCRIPT = ROOT / "examples" / "scripts" / "broken-calculator.yaml"
SCRIPTED = f"scripted:{SCRIPT}"


def refused(ran: Ran, exit_code: int, text: str) -> None:
    """The command ended with this code and one message on standard error, whose further lines are indented."""
    assert ran.exit_code == exit_code, ran.out + ran.err
    before, found, message = ran.err.rpartition("portside: ")
    assert found, ran.err
    assert text in message
    assert all(line.startswith("  ") for line in message.splitlines()[1:]), ran.err
    assert "Traceback" not in ran.err + ran.out
    assert "portside: " not in before


@pytest.fixture
def without_engine(tmp_path: Path) -> CommandLine:
    """A command line with an engine that does not exist."""
    return CommandLine(tmp_path / "home", {"PORTSIDE_ENGINE_URL": f"unix://{tmp_path / 'none.sock'}"})


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["jobs", "show", "../x"], "is no job's id"),
        (["jobs", "show", "../mcp?x=345678901234567890123456789"], "is no job's id"),
        (["agents", "token", "x", "--days", "500"], "/days: Input should be less than or equal to 366"),
    ],
)
def test_a_mistake_that_the_orchestrator_finds_is_exit_code_2(
    without_engine: CommandLine, arguments: list[str], text: str
) -> None:
    refused(without_engine.run(*arguments), 2, text)
    assert not (without_engine.home / "api.sock").exists()


def test_a_job_that_could_not_run_starts_nothing(without_engine: CommandLine, tmp_path: Path) -> None:
    """A hosted model without a key and a script that can't be read are found before the engine is asked."""
    refused(without_engine.run("run", "x", "--model", "openai:m"), 1, "set OPENAI_API_KEY")
    broken = tmp_path / "broken.yaml"
    broken.write_text("turns: [{say: x, unknown: 1}]")
    refused(without_engine.run("run", "x", "--model", f"scripted:{broken}"), 1, "unknown")
    assert not (without_engine.home / "portside.db").exists()


def test_an_unknown_job_tool_or_server_is_named(without_engine: CommandLine) -> None:
    refused(without_engine.run("jobs", "show", "abcd"), 1, "there is no job 'abcd'")
    whole = "01a22c9e-5ae2-72ae-a53c-195001441a94"
    refused(without_engine.run("jobs", "cancel", whole), 1, "there is no job")
    refused(without_engine.run("tools", "show", "nothing"), 1, "there is no tool named 'nothing'")
    refused(without_engine.run("mcp", "test", "nothing"), 1, "there is no MCP server 'nothing'")


def test_no_engine_is_a_failure_that_lists_what_was_tried(without_engine: CommandLine) -> None:
    text = "no container engine answers. Start Docker"
    if any(Path(place).exists() for place in ("/var/run/docker.sock", "/run/podman/podman.sock")):
        pytest.skip("this machine has an engine at a usual place: it would be used")
    refused(without_engine.run("run", "x", "--model", SCRIPTED), 1, text)


def test_an_engine_that_accepts_and_never_answers_ends_in_time(tmp_path: Path) -> None:
    """BR-103: a hanging engine is a clear error within its deadline, not a hanging command."""
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "silent.sock"))
        silent.listen()
        command_line = CommandLine(
            tmp_path / "home", {"PORTSIDE_ENGINE_URL": f"unix://{tmp_path / 'silent.sock'}"}
        )
        ran = command_line.run("image", "list", timeout_s=60)
    refused(ran, 1, "silent.sock")


def test_a_missing_image_is_the_jobs_own_failure(command_line: CommandLine) -> None:
    ran = command_line.run("run", "x", "--model", SCRIPTED, "--image", "portside-nothing:1", "--json")
    assert ran.exit_code == 3, ran.out + ran.err
    job = ran.lines[-1]["job"]
    assert job["state"] == "failed"
    assert "portside-nothing:1 is not on this engine" in job["reason"]


def test_a_wasm_file_that_is_no_component_is_refused_and_leaves_nothing(
    without_engine: CommandLine, tmp_path: Path
) -> None:
    core = tmp_path / "core.wasm"
    core.write_bytes(b"\0asm\x01\0\0\0")
    refused(without_engine.run("tools", "add", str(core)), 2, "core.wasm")
    assert list((without_engine.home / "tools").rglob("*.wasm")) == []
    refused(without_engine.run("tools", "add", str(tmp_path / "none.wasm")), 2, "can't be read")


def test_what_a_wasm_tool_asks_for_is_shown_and_needs_a_yes(
    without_engine: CommandLine, tmp_path: Path
) -> None:
    """BR-095, PD-42: nobody at the terminal means no, also when the file changes later."""
    tool = tmp_path / "calc.wasm"
    tool.write_bytes((ROOT / "wasm_tools" / "guests" / "calc" / "calc.wasm").read_bytes())
    grants: dict[str, Any] = {"version": 1, "http": {"allow": [{"host": "api.example.org"}]}}
    (tmp_path / "calc.capabilities.json").write_text(json.dumps(grants))
    ran = without_engine.run("tools", "add", str(tool))
    refused(ran, 1, "was not added")
    line = "send GET, HEAD to https://api.example.org/"
    assert line in ran.out + ran.err
    assert not list((without_engine.home / "tools").rglob("*.wasm"))
    added = without_engine.run("tools", "add", str(tool), "--yes", "--json")
    assert added.exit_code == 0, added.err
    assert json.loads(added.out)["grants"] == [line]
    grants["workspace"] = {"read": ["docs"]}
    (without_engine.home / "tools" / "calc.capabilities.json").write_text(json.dumps(grants))
    more = "read docs in the workspace, as the job began"
    (row,) = [
        one for one in without_engine.run("tools", "list", "--explain").out.splitlines() if "calc" in one
    ]
    assert "no: needs_consent" in row
    assert f"asks to         {more}" in without_engine.run("tools", "show", "calc").out.splitlines()
    checked = without_engine.run("tools", "check")
    assert (checked.exit_code, more in checked.out) == (1, True)
    no = without_engine.run("tools", "approve", "calc")
    refused(no, 1, "was not approved")
    assert more in no.out
    assert line not in no.out, "the difference is shown, not all of it"
    yes = without_engine.run("tools", "approve", "calc", "--yes")
    assert (yes.exit_code, yes.out) == (0, f"calc asks to\n  - {more}\ncalc may {line}; {more}\n")


def test_a_server_that_never_answers_fails_its_test_in_time(without_engine: CommandLine) -> None:
    without_engine.home.mkdir()
    entry = {"command": "sleep", "args": ["1000"], "start_timeout_s": 1}
    (without_engine.home / "mcp.json").write_text(json.dumps({"mcpServers": {"mute": entry}}))
    ran = without_engine.run("mcp", "test", "mute", timeout_s=60)
    assert ran.exit_code == 1, ran.out + ran.err
    assert ran.out.startswith("mute is not usable: ")
    assert "Traceback" not in ran.out + ran.err


def test_a_refused_call_tells_what_to_correct(without_engine: CommandLine) -> None:
    without_engine.add_wasm(ROOT / "wasm_tools" / "guests" / "calc" / "calc.wasm")
    refused(without_engine.run("tools", "call", "calc", '{"expr": "1"}'), 1, "expression")
    assert (
        json.loads(without_engine.run("tools", "call", "calc", '{"expression": "6*7"}').out)["result"] == "42"
    )


def test_a_tool_no_provider_can_be_shown_fails_the_check(without_engine: CommandLine) -> None:
    (without_engine.home / "tools").mkdir(parents=True)
    (without_engine.home / "tools" / "bad.wasm").write_bytes(b"nothing")
    ran = without_engine.run("tools", "check", "--json")
    assert ran.exit_code == 1, ran.err
    assert "bad" in json.loads(ran.out)["unusable"]


def test_a_broken_pipe_ends_quietly(without_engine: CommandLine) -> None:
    process = without_engine.start("tools", "list", "--json")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(60) == 1


def test_doctor_names_what_fails_and_the_fix(without_engine: CommandLine) -> None:
    without_engine.add_mcp("broken", "/nowhere/server")
    agents = without_engine.home / "agents.yaml"
    agents.write_text("networks: {local: {agents: {ann: {knid: human}}}}")
    ran = without_engine.run("doctor", "--json")
    assert ran.exit_code == 1, ran.err
    bad = {one["check"]: one for one in json.loads(ran.out)["findings"] if one["verdict"] == "bad"}
    assert {"model", "agents", "mcp broken"} <= bad.keys()
    assert f"{agents} line 1: networks.local.agents.ann.knid: unknown key" in bad["agents"]["detail"]
    assert all(one["fix"] for one in bad.values())


def test_doctor_says_whether_hosts_can_be_allowed_and_what_to_type(without_engine: CommandLine) -> None:
    """PD-70."""

    def said(squid: str) -> dict[str, str]:
        variables = {**without_engine.environment, "PORTSIDE_EGRESS_SQUID": squid}
        findings = json.loads(replace(without_engine, environment=variables).run("doctor", "--json").out)
        return next(one for one in findings["findings"] if one["check"] == "allowed hosts")

    missing = said("/nowhere/squid")
    assert missing["verdict"] == "note"
    assert "squid, which is not there" in missing["detail"]
    assert "install" in missing["detail"]
    squid_or_skip()
    there = said("")
    assert (there["verdict"], there["detail"]) == ("good", "squid was started and answered")


def test_doctor_finds_a_machine_that_is_ready(command_line: CommandLine) -> None:
    command_line.add_mcp("good", sys.executable, PROGRAM, "Server")
    ready = replace(command_line, environment={**command_line.environment, "PORTSIDE_MODEL": SCRIPTED})
    ran = ready.run("doctor", "--json")
    found = json.loads(ran.out)
    assert ran.exit_code == 0, found
    # Squid is for those who allow hosts: all else is ready without it.
    good = {one["check"] for one in found["findings"] if one["verdict"] == "good"} - {"allowed hosts"}
    inside = {"socket", "egress", "dns", "root", "engine sockets", "disk", "filter", "user", "capabilities"}
    assert good == inside | {"home", "engine", "image", "database", "model", "mcp good", "wasm"}

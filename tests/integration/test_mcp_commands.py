"""DC-1, PD-14: `portside mcp import` and `test`, as their user types them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import mcp_servers as fakes
from tests.support.command_line import CommandLine
from tests.support.orchestrator import Wired


@pytest.fixture
def line(tmp_path: Path) -> CommandLine:
    """A command line without an engine."""
    return CommandLine(tmp_path / "home", {})


def configured(home: Path) -> dict[str, Any]:
    return json.loads((home / "mcp.json").read_text())["mcpServers"]


def test_a_file_is_taken_in_once_and_nothing_is_overwritten_unless_asked(line: CommandLine, tmp_path: Path):
    file = tmp_path / "theirs.json"
    echo = fakes.command(fakes.Server)
    file.write_text(json.dumps({"servers": {"a": echo, "b": {**echo, "env": {"KEY": "${input:key}"}}}}))
    first = line.run("mcp", "import", str(file), "--json")
    assert first.exit_code == 0, first.err
    done = json.loads(first.out)
    assert (done["added"], done["missing_secrets"]) == (["a", "b"], ["key"])
    assert configured(line.home)["b"]["env"] == {"KEY": "${secret:key}"}

    file.write_text(json.dumps({"mcpServers": {"a": {**echo, "timeout_s": 5}, "c": echo}}))
    refused = line.run("mcp", "import", str(file))
    assert refused.exit_code == 1
    assert "'a' is configured differently already" in refused.err
    assert "--replace" in refused.err
    assert sorted(configured(line.home)) == ["a", "b"]

    replaced = line.run("mcp", "import", str(file), "--replace")
    assert replaced.exit_code == 0, replaced.err
    assert replaced.out.splitlines() == ["added c", "replaced a"]
    assert configured(line.home)["a"]["timeout_s"] == 5


def test_a_file_that_can_not_be_used_changes_nothing_and_names_the_fix(line: CommandLine, tmp_path: Path):
    file = tmp_path / "theirs.json"
    file.write_text('{"mcpServers": {"good": {"command": "x"}, "bad": {"comand": "x"}}}')
    ran = line.run("mcp", "import", str(file))
    assert ran.exit_code == 1
    assert "did you mean 'command'" in ran.err
    assert not (line.home / "mcp.json").exists()
    absent = line.run("mcp", "import", str(tmp_path / "absent.json"))
    assert absent.exit_code == 2
    assert "can't be read" in absent.err


def test_a_trial_shows_the_handshake_the_tools_and_every_providers_verdict(line: CommandLine):
    line.add_mcp("s", *_words(fakes.command(fakes.Odd)))
    ran = line.run("mcp", "test", "s")
    assert ran.exit_code == 1, ran.out + ran.err
    shown = ran.out
    assert "s is ready: 2 tools, protocol 2025-11-25" in shown
    assert "fake 1 over stdio" in shown
    assert "changes of its tools are not announced" in shown
    assert "initialize" in shown
    assert "s_plain" in shown
    assert "not registered: s_remote" in shown
    as_json = json.loads(line.run("mcp", "test", "s", "--json").out)
    assert as_json["handshake_ms"] > 0
    assert as_json["list_ms"] > 0
    by_name = {tool["name"]: tool for tool in as_json["tools"]}
    plain = {view["provider"]: view["verdict"] for view in by_name["s_plain"]["providers"]}
    assert plain.items() >= dict.fromkeys(("openai", "anthropic", "generic"), "unchanged").items()
    assert "changed" in {view["verdict"] for view in by_name["s_dotted"]["providers"]}
    assert list(as_json["refused"]) == ["s_remote"]


def test_a_server_that_does_not_start_is_a_failure_with_its_reason(line: CommandLine):
    line.add_mcp("s", "no-such-program")
    ran = line.run("mcp", "test", "s")
    assert ran.exit_code == 1
    assert "'no-such-program' was not found" in ran.out


async def test_a_refused_schema_is_among_the_problems_of_a_running_server(orchestrator: Wired):
    """PD-3: the reason is where the operator looks; the neighbours stay."""
    answer = await orchestrator.operator.put("/api/v1/mcp/s", json={"config": fakes.command(fakes.Odd)})
    assert answer.status_code == 201, answer.text
    async with asyncio.timeout(20):
        while (server := await _server(orchestrator))["state"] != "ready":  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.02)
    assert server["tool_count"] == 2
    assert any("s_remote" in problem and "remote" in problem for problem in server["problems"])


async def _server(running: Wired) -> dict[str, Any]:
    (server,) = (await running.operator.get("/api/v1/mcp")).json()
    return server


def _words(entry: dict[str, Any]) -> list[str]:
    return [entry["command"], *entry["args"]]

"""PD-32: `python -m worker` with a command in the loop's place: its own process, a real shell, real tools."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.worker_orchestrator import WorkerOrchestrator, tar_of
from tests.support.command_line import ROOT
from tests.support.deadline import eventually, within
from tests.support.mcp import alive

# An agent of a few lines: it asks the model over HTTP and calls tools over MCP, as it was told where.
AGENT = """
import asyncio, json, os, sys, urllib.request
from mcp import Client
from mcp.client.stdio import StdioServerParameters

def ask(base, path, key):
    request = urllib.request.Request(
        os.environ[base] + path,
        data=json.dumps({"model": os.environ["PORTSIDE_MODEL"]}).encode(),
        headers={"Authorization": "Bearer " + os.environ[key], "Content-Type": "application/json"},
    )
    return json.load(urllib.request.urlopen(request))

async def main():
    print("openai", json.dumps(ask("OPENAI_BASE_URL", "/chat/completions", "OPENAI_API_KEY")))
    print("anthropic", json.dumps(ask("ANTHROPIC_BASE_URL", "/v1/messages", "ANTHROPIC_API_KEY")))
    with open(os.environ["PORTSIDE_MCP_CONFIG"]) as file:
        server = json.load(file)["mcpServers"]["portside"]
    async with Client(StdioServerParameters(**{k: server[k] for k in ("command", "args")})) as client:
        print("tools", sorted(tool.name for tool in (await client.list_tools()).tools))
        done = await client.call_tool("shell", {"command": "echo two > a.txt; cat a.txt"})
        print("shell", json.loads(done.content[0].text)["stdout"].strip())
        far = await client.call_tool("github_search", {"query": "x"})
        print("far", far.content[0].text)
    print("to stderr", file=sys.stderr)

asyncio.run(main())
"""


@pytest.fixture
def orchestrator(tmp_path: Path) -> Iterator[WorkerOrchestrator]:
    directory = tmp_path / "job"
    directory.mkdir()
    fake = WorkerOrchestrator(directory)
    fake.job["model"] = "openai:gpt-9"
    fake.start()
    yield fake
    fake.stop()


async def start(orchestrator: WorkerOrchestrator, tmp_path: Path, command: str) -> asyncio.subprocess.Process:
    orchestrator.job["command"] = command
    settings = {
        "PORTSIDE_JOB_ID": orchestrator.job_id,
        "PORTSIDE_ATTEMPT": "1",
        "PORTSIDE_SOCKET": str(orchestrator.socket),
        "PORTSIDE_TOKEN_FILE": str(orchestrator.token_file),
        "PORTSIDE_STATE_DIR": str(tmp_path / "state"),
        "PORTSIDE_OUTPUT_DIR": str(tmp_path / "out"),
        "PORTSIDE_WORKSPACE": str(tmp_path / "workspace"),
        "PORTSIDE_BRIDGE": str(tmp_path / "bridge.sock"),
        "PORTSIDE_GRACE_S": "15",
        "PYTHONPATH": str(ROOT),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path / "state" / "home"),
    }
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "worker", env=settings, cwd="/", stderr=asyncio.subprocess.PIPE
    )


async def ended(process: asyncio.subprocess.Process) -> None:
    _, errors = await within(60.0, process.communicate())
    assert (process.returncode, errors) == (0, b"")


def output(orchestrator: WorkerOrchestrator, stream: str = "stdout") -> str:
    return "".join(one["text"] for one in orchestrator.of_type("output") if one["stream"] == stream)


def reported(orchestrator: WorkerOrchestrator) -> dict[str, Any]:
    assert orchestrator.report is not None
    return orchestrator.report


async def test_an_agent_finds_its_model_and_its_tools_and_no_key(
    orchestrator: WorkerOrchestrator, tmp_path: Path
) -> None:
    orchestrator.workspace = tar_of({"a.txt": b"one\n"})
    orchestrator.advertise("github_search", lambda params: f"found {params['query']}")
    (tmp_path / "agent.py").write_text(AGENT)
    await ended(await start(orchestrator, tmp_path, f"{sys.executable} {tmp_path / 'agent.py'}"))
    said = dict(line.split(" ", 1) for line in output(orchestrator).splitlines())
    assert json.loads(said["openai"])["route"] == "llm/openai/v1/chat/completions"
    assert json.loads(said["anthropic"])["route"] == "llm/anthropic/v1/messages"
    assert json.loads(said["openai"])["asked"] == {"model": "gpt-9"}
    tools = ["apply_patch", "github_search", "list_dir", "read_file", "shell", "write_file"]
    assert said["tools"] == str(tools)
    assert (said["shell"], said["far"]) == ("two", "found x")
    assert output(orchestrator, "stderr") == "to stderr\n"
    assert orchestrator.executed == [("1:mcp-2", "github_search", {"query": "x"})]
    assert orchestrator.changes is not None
    assert b"-one\n+two\n" in orchestrator.changes
    report = reported(orchestrator)
    assert (report["outcome"], report["iterations"], report["result"]) == ("completed", 2, {"exit_code": 0})
    assert report["message"].endswith("far found x")
    asked = [one for one in orchestrator.seen if one.route.startswith("llm/")]
    assert not [one for one in asked if "held-by-portside" in str(one.headers)]


async def test_the_token_is_nowhere_that_the_command_can_look(
    orchestrator: WorkerOrchestrator, tmp_path: Path
) -> None:
    """PD-18, PD-30: not in its environment, its files, the bridge's process or the worker's."""
    look = (
        "env; cat /proc/$PPID/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n';"
        f" cat $PORTSIDE_MCP_CONFIG; grep -r eyJ {tmp_path}/state {tmp_path}/workspace {tmp_path}/job;"
        " for p in /proc/[0-9]*; do cat $p/environ 2>/dev/null | tr '\\0' '\\n' | grep eyJ; done; true"
    )
    tokens = set[str]()
    issue = orchestrator.issue_token

    def noted() -> str:
        tokens.add(issue())
        return [*tokens][-1]

    orchestrator.token_file.write_text(noted())
    await ended(await start(orchestrator, tmp_path, look))
    said = output(orchestrator) + output(orchestrator, "stderr")
    assert "PORTSIDE_MCP_CONFIG=" in said
    assert '"mcpServers"' in said
    for token in tokens:
        assert token not in said
        assert token not in str(reported(orchestrator))


@pytest.mark.parametrize(
    ("command", "code", "reason"),
    [
        ("echo no >&2; exit 3", 3, "the command exited with code 3"),
        ("kill -KILL $$", -9, "the command was ended by SIGKILL"),
        ("no-such-agent", 127, "the command exited with code 127"),
    ],
)
async def test_a_command_that_fails_fails_its_job(
    orchestrator: WorkerOrchestrator, tmp_path: Path, command: str, code: int, reason: str
) -> None:
    await ended(await start(orchestrator, tmp_path, command))
    report = reported(orchestrator)
    assert (report["outcome"], report["reason"], report["result"]) == ("failed", reason, {"exit_code": code})
    assert orchestrator.changes == b""


async def test_a_cancel_ends_the_command_s_whole_tree_and_keeps_its_changes(
    orchestrator: WorkerOrchestrator, tmp_path: Path
) -> None:
    """BR-027, BR-108."""
    command = "echo half > half.txt; (setsid sleep 300 & echo $! > pid; wait) & wait"
    process = await start(orchestrator, tmp_path, command)
    await eventually((tmp_path / "workspace" / "pid").exists, 30.0)
    orchestrator.deliveries.append({"delivery_id": "d", "kind": "cancel", "text": "enough"})
    await ended(process)
    report = reported(orchestrator)
    assert (report["outcome"], report["reason"]) == ("cancelled", "enough")
    assert orchestrator.changes is not None
    assert b"+half" in orchestrator.changes
    assert not alive(int((tmp_path / "workspace" / "pid").read_text()))


async def test_sigterm_ends_the_command_in_good_order(
    orchestrator: WorkerOrchestrator, tmp_path: Path
) -> None:
    process = await start(orchestrator, tmp_path, "echo half > half.txt; sleep 300")
    await eventually((tmp_path / "workspace" / "half.txt").exists, 30.0)
    process.send_signal(signal.SIGTERM)
    await ended(process)
    assert reported(orchestrator)["outcome"] == "cancelled"
    assert not (tmp_path / "bridge.sock").exists()


async def test_the_deadline_ends_the_command(orchestrator: WorkerOrchestrator, tmp_path: Path) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=4)  # noqa: TID251
    orchestrator.job["limits"]["deadline_at"] = soon.isoformat()
    await ended(await start(orchestrator, tmp_path, "sleep 300"))
    report = reported(orchestrator)
    assert report["outcome"] == "limit"
    assert report["reason"].startswith("deadline")


async def test_what_a_command_leaves_running_ends_with_it(
    orchestrator: WorkerOrchestrator, tmp_path: Path
) -> None:
    """BR-025: a child that holds the pipe does not hold the job."""
    await ended(await start(orchestrator, tmp_path, "sleep 300 & echo $! > pid; echo done"))
    assert reported(orchestrator)["outcome"] == "completed"
    assert not alive(int((tmp_path / "workspace" / "pid").read_text()))


async def test_long_output_keeps_its_beginning_and_its_end(
    orchestrator: WorkerOrchestrator, tmp_path: Path
) -> None:
    """BR-029, BR-036: bounded, without colours, and what is missing is said."""
    command = "printf '\\033[31mfirst\\033[0m\\n'; seq 1 1200000; echo last"
    await ended(await start(orchestrator, tmp_path, command))
    said = output(orchestrator)
    assert said.startswith("first\n1\n2\n")
    assert said.endswith("1200000\nlast\n")
    assert "characters left out" in said
    assert len(said) < 5 * 1024 * 1024
    assert max(len(json.dumps(one)) for one in orchestrator.events) < 64 * 1024
    assert reported(orchestrator)["message"].endswith("last")


async def test_a_line_is_told_while_the_command_goes_on(
    orchestrator: WorkerOrchestrator, tmp_path: Path
) -> None:
    command = "echo first; until [ -e go ]; do sleep 0.05; done; echo second"
    process = await start(orchestrator, tmp_path, command)
    await eventually(lambda: output(orchestrator) == "first\n", 30.0)
    (tmp_path / "workspace" / "go").touch()
    await ended(process)
    assert output(orchestrator) == "first\nsecond\n"


async def test_granted_secrets_reach_the_command_and_no_event(
    orchestrator: WorkerOrchestrator, tmp_path: Path
) -> None:
    """BR-121."""
    orchestrator.credentials = [{"env_var": "GH_TOKEN", "value": "s3cr3t-value"}]
    await ended(await start(orchestrator, tmp_path, "echo $GH_TOKEN | rev; echo $GH_TOKEN"))
    assert output(orchestrator) == "eulav-t3rc3s\n[redacted:GH_TOKEN]\n"
    assert "s3cr3t" not in str(reported(orchestrator))


async def test_a_changed_catalogue_reaches_a_running_agent(
    orchestrator: WorkerOrchestrator, tmp_path: Path
) -> None:
    """BR-054: looked for while the command runs, and announced."""
    agent = """
import asyncio, json, os
from mcp import Client
from mcp.client.stdio import StdioServerParameters

async def main():
    changed = asyncio.Event()

    async def heard(message):
        if type(message).__name__ == "ToolListChangedNotification":
            changed.set()

    server = json.load(open(os.environ["PORTSIDE_MCP_CONFIG"]))["mcpServers"]["portside"]
    parameters = StdioServerParameters(command=server["command"], args=server["args"])
    async with Client(parameters, mode="legacy", message_handler=heard) as client:
        await client.list_tools()
        open("listed", "w").close()
        await changed.wait()
        print([tool.name for tool in (await client.list_tools()).tools if tool.name.startswith("new")])

asyncio.run(main())
"""
    (tmp_path / "agent.py").write_text(agent)
    process = await start(orchestrator, tmp_path, f"{sys.executable} {tmp_path / 'agent.py'}")
    await eventually((tmp_path / "workspace" / "listed").exists, 30.0)
    orchestrator.advertise("new_tool", lambda _params: "new")
    await ended(process)
    assert output(orchestrator) == "['new_tool']\n"

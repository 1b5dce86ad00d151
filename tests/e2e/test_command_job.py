"""PD-30, PD-31, PD-32: any agent in the box: the providers' own SDKs and an MCP client in a sealed container."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.providers import Call, FakeProvider, Say, Seen, fake_provider
from tests.support.command_line import CommandLine, Ran
from tests.support.mcp import alive

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.timeout(300)]

KEY = "sk-outside-only-4f1c9a7b2d8e6035"
UNPACK = "for wheel in wheels/*.whl; do python -m zipfile -e $wheel /tmp/sdk; done; PYTHONPATH=/tmp/sdk"

OPENAI_AGENT = """
import os
from openai import NotFoundError, OpenAI

client, model = OpenAI(), os.environ["PORTSIDE_MODEL"]
messages = [{"role": "user", "content": os.environ["PORTSIDE_TASK"]}]
tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}

whole = client.chat.completions.create(model=model, messages=messages, tools=[tool])
assert whole.choices[0].message.content == "hello there", whole
assert whole.choices[0].message.tool_calls[0].function.arguments == '{"a": 1}'
stream = client.chat.completions.create(model=model, messages=messages, stream=True)
assert "".join(c.choices[0].delta.content or "" for c in stream if c.choices) == "hello there"
assert client.responses.create(model=model, input="hi", store=False).output_text == "hello there"
with client.responses.stream(model=model, input="hi") as events:
    assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == "hello there"
try:
    client.files.list()
    raise AssertionError("files are no part of a job's model")
except NotFoundError:
    pass
print("openai works as", model)
"""

ANTHROPIC_AGENT = """
import os
from anthropic import Anthropic, BadRequestError

client, model = Anthropic(), os.environ["ANTHROPIC_MODEL"]
messages = [{"role": "user", "content": os.environ["PORTSIDE_TASK"]}]
tool = {"name": "look", "input_schema": {"type": "object", "properties": {}}}

whole = client.messages.create(model=model, max_tokens=99, messages=messages, tools=[tool])
assert [block.type for block in whole.content] == ["text", "tool_use"], whole
assert whole.content[1].input == {"a": 1}
with client.messages.stream(model=model, max_tokens=99, messages=messages) as stream:
    assert stream.get_final_text() == "hello there"
try:
    client.messages.create(model="another", max_tokens=9, messages=messages)
    raise AssertionError("another model answered")
except BadRequestError as error:
    assert "its own model" in str(error)
print("anthropic works as", model)
"""

# What is looked for is not written anywhere: it is put together here.
HUNT = r"""
import glob, os, re, socket, sys

needle = "".join(reversed("{reversed_key}"))
token = re.compile(rb"eyJ[A-Za-z0-9_-]{20,}\.eyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}")
places = list(glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"))
for top in ("/workspace", "/state", "/tmp", "/run", "/etc", "/home", "/root", "/var", "/dev/shm"):
    for folder, _, names in os.walk(top):
        places += [os.path.join(folder, name) for name in names if not folder.startswith("/tmp/sdk")]
looked = 0
for place in places:
    try:
        if place.startswith("/proc") or os.path.isfile(place):
            data = open(place, "rb").read(4_000_000)
        else:
            continue
    except OSError:
        continue
    looked += 1
    assert needle.encode() not in data, "the key is in " + place
    assert not token.search(data), "a token is in " + place
assert needle not in str(os.environ), "the key is in the environment"
assert looked > 20, looked
for address in (("1.1.1.1", 443), ("127.0.0.1", {port})):
    probe = socket.socket()
    probe.settimeout(2)
    try:
        probe.connect(address)
        sys.exit("reached " + str(address))
    except OSError:
        pass
try:
    socket.getaddrinfo("example.org", 443)
    sys.exit("a name resolved")
except OSError:
    pass
print("looked at", looked, "places and found nothing")
"""

TOOLS_AGENT = """
import asyncio, json, os
from mcp import Client
from mcp.client.stdio import StdioServerParameters

async def main():
    server = json.load(open(os.environ["PORTSIDE_MCP_CONFIG"]))["mcpServers"]["portside"]
    assert set(server) == {"type", "command", "args"}, server
    parameters = StdioServerParameters(command=server["command"], args=server["args"])
    async with Client(parameters) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {"shell", "read_file", "write_file", "list_dir", "apply_patch", "network_whoami"} <= names, names
        async def call(name, **arguments):
            result = await client.call_tool(name, arguments)
            return result.is_error, result.content[0].text
        failed, text = await call("write_file", path="made.txt", content="made over MCP\\n")
        assert not failed, text
        failed, text = await call("shell", command="cat made.txt")
        assert json.loads(text)["stdout"] == "made over MCP\\n", text
        failed, text = await call("network_whoami")
        assert not failed and "coder" in text, text
        failed, text = await call("network_claim", scope=5)
        assert failed and "/scope" in text, text
        for hidden in ("mcp_add", "control_list", "finish"):
            failed, text = await call(hidden)
            assert failed and "there is no tool named" in text, text
        failed, text = await call("read_file", path="../etc/passwd")
        assert failed, text
    print("tools work")

asyncio.run(main())
"""


def says(seen: Seen) -> Say:
    """Calls a tool where one is shown."""
    calls = (Call("c1", "look", '{"a": 1}'),) if seen.body.get("tools") else ()
    return Say("hello there", calls)


async def run(command_line: CommandLine, *arguments: str, environment: Mapping[str, str]) -> Ran:
    there = replace(command_line, environment={**command_line.environment, **environment})
    return await asyncio.to_thread(there.run, "run", *arguments, "--json", timeout_s=200)


def workspace_of(directory: Path, files: Mapping[str, str], wheels: Path | None = None) -> Path:
    workspace = directory / "workspace"
    workspace.mkdir()
    for name, text in files.items():
        (workspace / name).write_text(text)
    if wheels is not None:
        shutil.copytree(wheels, workspace / "wheels")
    return workspace


def outcome(ran: Ran) -> tuple[dict[str, Any], str]:
    """The job, and what its command wrote."""
    events = [line["event"] for line in ran.lines if "event" in line]
    said = "".join(one["data"]["text"] for one in events if one["type"] == "output")
    return ran.lines[-1]["job"], said


def keys(provider: FakeProvider) -> dict[str, str]:
    return {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY, "PORTSIDE_MODEL_BASE_URL": provider.url}


@pytest.mark.parametrize(
    ("model", "agent", "requests", "header"),
    [
        ("openai:gpt-9", OPENAI_AGENT, 4, ("authorization", f"Bearer {KEY}")),
        ("anthropic:claude-9", ANTHROPIC_AGENT, 2, ("x-api-key", KEY)),
    ],
)
async def test_a_provider_s_sdk_works_in_the_box_and_the_key_is_nowhere_in_it(
    command_line: CommandLine,
    tmp_path: Path,
    sdk_wheels: Path,
    model: str,
    agent: str,
    requests: int,
    header: tuple[str, str],
) -> None:
    """PD-18, PD-31: streamed and not; looked for from inside, in environment, processes and files."""
    async with fake_provider() as provider:
        provider.reply = says
        port = provider.url.rpartition(":")[2]
        hunt = HUNT.replace("{reversed_key}", KEY[::-1]).replace("{port}", port)
        workspace = workspace_of(tmp_path, {"agent.py": agent, "hunt.py": hunt}, sdk_wheels)
        ran = await run(
            command_line,
            "say hello",
            *("--workspace", str(workspace), "--model", model),
            *("--exec", f"set -e; {UNPACK} python agent.py; python hunt.py"),
            environment=keys(provider),
        )
    job, said = outcome(ran)
    assert (ran.exit_code, job["state"], job["exit_code"]) == (0, "completed", 0), said + ran.err
    assert f"works as {model.partition(':')[2]}" in said
    assert "found nothing" in said
    assert (job["iterations"], job["model_requests"]) == (requests, requests)
    assert job["tokens_used"] == 120 * requests
    assert {seen.headers[header[0]] for seen in provider.seen} == {header[1]}
    assert KEY not in ran.out + ran.err


async def test_an_agent_has_the_job_s_tools_over_mcp_and_the_diff_is_its_work(
    command_line: CommandLine, tmp_path: Path
) -> None:
    workspace = workspace_of(tmp_path, {"agent.py": TOOLS_AGENT})
    ran = await run(
        command_line,
        *("--workspace", str(workspace), "--exec", "python agent.py"),
        environment={},
    )
    job, said = outcome(ran)
    assert (ran.exit_code, job["state"]) == (0, "completed"), said + ran.err
    assert (job["model"], job["command"]) == ("", "python agent.py")
    assert "+made over MCP" in ran.lines[-1]["diff"]
    results = [
        line["event"]["data"] for line in ran.lines if line.get("event", {}).get("type") == "tool_result"
    ]
    assert [(one["tool_name"], one["verdict"]) for one in results] == [
        ("write_file", "ok"),
        ("shell", "ok"),
        ("network_whoami", "ok"),
        ("network_claim", "invalid_params"),
        ("mcp_add", "tool_not_found"),
        ("control_list", "tool_not_found"),
        ("finish", "tool_not_found"),
        ("read_file", "error"),
    ]


@pytest.mark.parametrize(
    ("command", "timeout", "state", "reason"),
    [
        ("echo half > half.txt; exit 4", "60", "failed", "the command exited with code 4"),
        ("echo half > half.txt; sleep 200", "6", "timed_out", "deadline"),
    ],
)
async def test_a_command_that_fails_or_runs_on_ends_its_job_and_keeps_its_changes(
    command_line: CommandLine, command: str, timeout: str, state: str, reason: str
) -> None:
    ran = await run(command_line, "--exec", command, "--timeout", timeout, environment={})
    job, _ = outcome(ran)
    assert (ran.exit_code, job["state"]) == (3, state), ran.err
    assert reason in job["reason"]
    assert job["exit_code"] == (4 if state == "failed" else None)
    assert "+half" in ran.lines[-1]["diff"]


def test_a_cancelled_command_ends_with_all_it_started_and_hears_no_prompts(command_line: CommandLine) -> None:
    """BR-108."""
    command = "echo half > half.txt; sleep 200 & echo ready; wait"
    started = json.loads(command_line.run("run", "--exec", command, "--detach", "--json").out)
    try:
        job_id = started["job"]["id"]
        watching = command_line.start("jobs", "attach", job_id, "--json")
        assert watching.stdout is not None
        for line in watching.stdout:
            if json.loads(line).get("event", {}).get("type") == "output":
                break
        prompted = command_line.run("jobs", "prompt", job_id, "hello")
        assert (prompted.exit_code, "takes no prompts" in prompted.err) == (1, True)
        cancelled = json.loads(command_line.run("jobs", "cancel", job_id, "--wait", "--json").out)
        assert cancelled["state"] == "cancelled"
        watching.communicate(timeout=60)
        assert "+half" in command_line.run("jobs", "diff", job_id).out
        shown = command_line.run("jobs", "show", job_id).out
        assert command in shown
    finally:
        pid = int(started["stop"].split()[-1])
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + 30
        while alive(pid):
            assert time.monotonic() < deadline, "its orchestrator does not end"
            threading.Event().wait(0.05)


async def test_a_script_is_the_model_of_a_command_too(command_line: CommandLine, tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("turns:\n  - say: from the script\n")
    ask = (
        'python -c \'import json, os, urllib.request as u; r = u.Request(os.environ["OPENAI_BASE_URL"]'
        ' + "/chat/completions", json.dumps({"model": os.environ["PORTSIDE_MODEL"], "messages":'
        ' [{"role": "user", "content": "hi"}]}).encode(), {"Content-Type": "application/json"});'
        " print(u.urlopen(r).read().decode())'"
    )
    ran = await run(command_line, "--model", f"scripted:{script}", "--exec", ask, environment={})
    job, said = outcome(ran)
    assert (ran.exit_code, job["state"]) == (0, "completed"), said + ran.err
    assert json.loads(said)["choices"][0]["message"]["content"] == "from the script"
    assert str(tmp_path) not in said

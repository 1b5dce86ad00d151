"""PD-30: the bridge as agents use it: a process on stdio, the official client, both eras of the protocol."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.client import ConnectMode

from tests.fakes.local_tools import LocalTool
from tests.fakes.transport import MemoryTransport
from tests.support.bridge import bridge_over, raw_client
from tests.support.deadline import eventually, within
from tool_registry.errors import RemoteProblem
from tool_registry.output import ToolOutput
from worker.bridge.gate import MAX_SESSIONS
from worker.protocol.tools import ToolPolicy, WireToolDefinition, WireToolOutput

SCHEMA: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "properties": {"z": {"default": None, "type": ["string", "null"]}, "a": {"multipleOf": 1e-05}},
    "required": ["z"],
    "additionalProperties": False,
    "title": "Süche",
    "type": "object",
    "definitions": {"never": False},
    "anyOf": [{"required": ["a"]}, {}],
}


def remote(name: str = "search", schema: dict[str, Any] | None = None) -> WireToolDefinition:
    return WireToolDefinition(name=name, description=f"does {name}", parameters=schema or SCHEMA)


def transport_with(*tools: WireToolDefinition) -> MemoryTransport:
    transport = MemoryTransport()
    transport.tools = list(tools)
    return transport


async def answer(params: dict[str, Any]) -> Any:
    return {"got": params}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_agent_lists_and_calls_local_and_remote_tools(tmp_path: Path, mode: ConnectMode) -> None:
    transport = transport_with(remote())
    transport.instructions = ["Instructions from wiki: be brief"]
    transport.policies = {"search": ToolPolicy(read_only=True)}
    async with (
        bridge_over(transport, tmp_path, [LocalTool("shell", answer)]) as bridge,
        Client(bridge.command(), mode=mode) as client,
    ):
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert sorted(listed) == ["search", "shell"]
        assert listed["search"].annotations is not None
        assert listed["search"].annotations.read_only_hint
        assert client.instructions == "Instructions from wiki: be brief"
        local = await client.call_tool("shell", {"command": "ls"})
        assert (local.is_error, local.content[0].model_dump()["text"]) == (
            False,
            '{"got":{"command":"ls"}}',
        )
        far = await client.call_tool("search", {"z": "q"})
        assert far.content[0].model_dump()["text"] == "ran"
        ((key, request, _),) = transport.executed
        assert (key, request.tool_name, request.params) == ("1:mcp-2", "search", {"z": "q"})
        used = [(one.call_id, one.tool_name, one.source) for one in await bridge.data("tool_use")]
        assert used == [("mcp-1", "shell", "local"), ("mcp-2", "search", "proxy")]
        verdicts = [(one.verdict, one.first_call) for one in await bridge.data("tool_result")]
        assert verdicts == [("ok", True), ("ok", True)]


async def test_schemas_leave_the_bridge_byte_for_byte_as_their_owner_wrote_them(tmp_path: Path) -> None:
    """HW-2: key order, number forms, nulls and keywords of every draft stay."""
    wanted = json.dumps(SCHEMA, ensure_ascii=False, separators=(",", ":")).encode()
    async with bridge_over(transport_with(remote()), tmp_path) as bridge, raw_client(bridge) as client:
        await client.initialise()
        await client.send(b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}')
        assert b'"inputSchema":' + wanted in await client.receive()


async def test_a_schema_without_a_type_is_listed_as_the_object_that_it_is(tmp_path: Path) -> None:
    transport = transport_with(remote("odd", {"anyOf": [{"required": ["a"]}, {}]}))
    async with bridge_over(transport, tmp_path) as bridge, Client(bridge.command(), mode="legacy") as client:
        (tool,) = (await client.list_tools()).tools
        assert tool.input_schema == {"anyOf": [{"required": ["a"]}, {}], "type": "object"}


async def test_a_changed_catalogue_is_announced_while_a_session_lasts(tmp_path: Path) -> None:
    """BR-054: by notification to a client of the handshake era, on its stream to one that listens."""
    transport = transport_with(remote())
    heard: list[str] = []

    async def note(message: Any) -> None:
        heard.append(type(message).__name__)

    async with (
        bridge_over(transport, tmp_path) as bridge,
        Client(bridge.command(), mode="legacy", message_handler=note) as old,
        Client(bridge.command()) as new,
    ):
        await old.list_tools()
        async with new.listen(tools_list_changed=True) as stream:
            transport.tools = [remote(), remote("added")]
            transport.version = "sha256:2"
            await bridge.surface.refresh()
            event = await within(10.0, anext(aiter(stream)))
            assert type(event).__name__ == "ToolsListChanged"
            await eventually(lambda: "ToolListChangedNotification" in heard)
        assert [tool.name for tool in (await old.list_tools()).tools] == ["added", "search"]


async def test_a_listing_is_never_older_than_the_catalogue(tmp_path: Path) -> None:
    transport = transport_with(remote())
    async with bridge_over(transport, tmp_path) as bridge, Client(bridge.command(), mode="legacy") as client:
        await client.list_tools()
        transport.tools, transport.version = [remote("other")], "sha256:2"
        assert [tool.name for tool in (await client.list_tools()).tools] == ["other"]


async def test_a_call_that_can_not_run_says_why_as_a_failed_result(tmp_path: Path) -> None:
    """PD-4, BR-142: an unknown or hidden name, arguments that do not fit, a tool with a bug."""

    async def breaks(_params: dict[str, Any]) -> Any:
        raise RuntimeError("in /srv/secret/place.py")

    closed = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}
    tools = [LocalTool("count", answer, parameters=closed), LocalTool("breaks", breaks)]
    async with (
        bridge_over(transport_with(), tmp_path, tools) as bridge,
        Client(bridge.command()) as client,
    ):

        async def said(name: str, params: dict[str, Any]) -> str:
            result = await client.call_tool(name, params)
            assert result.is_error
            return result.content[0].model_dump()["text"]

        assert "there is no tool named 'gated'" in await said("gated", {})
        assert "Did you mean count" in await said("counts", {})
        assert "/n" in await said("count", {"n": "one"})
        broken = await said("breaks", {})
        assert broken.startswith("internal: ")
        assert "/srv/secret" not in broken
        verdicts = [one.verdict for one in await bridge.data("tool_result")]
        assert verdicts == ["tool_not_found", "tool_not_found", "invalid_params", "internal"]


async def test_images_go_through_and_odd_blocks_become_text(tmp_path: Path) -> None:
    """BR-064."""
    blocks = ({"type": "image", "data": "aGk=", "mimeType": "image/png"}, {"type": "omitted", "was": "x"})

    async def show(_params: dict[str, Any]) -> ToolOutput:
        return ToolOutput("seen", content=blocks)

    async with (
        bridge_over(transport_with(), tmp_path, [LocalTool("show", show)]) as bridge,
        Client(bridge.command()) as client,
    ):
        first, image, odd = (await client.call_tool("show", {})).content
        assert first.model_dump()["text"] == "seen"
        assert (image.type, image.model_dump()["data"]) == ("image", "aGk=")
        assert odd.model_dump()["text"] == '{"type":"omitted","was":"x"}'


async def test_a_cancelled_call_ends_its_tool(tmp_path: Path) -> None:
    """BR-068."""
    started, ended = asyncio.Event(), asyncio.Event()

    async def wait(_params: dict[str, Any]) -> Any:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with (
        bridge_over(transport_with(), tmp_path, [LocalTool("wait", wait)]) as bridge,
        Client(bridge.command()) as client,
    ):
        call = asyncio.create_task(client.call_tool("wait", {}))
        await within(10.0, started.wait())
        call.cancel()
        await within(10.0, ended.wait())
        assert [one.verdict for one in await bridge.data("tool_result")] == ["cancelled"]


async def test_a_job_that_is_over_is_told_to_the_worker(tmp_path: Path) -> None:
    transport = transport_with(remote())

    async def gone(_request: Any) -> WireToolOutput:
        raise RemoteProblem("the job has ended", code="job_not_active", retryable=False)

    transport.remote = gone
    async with bridge_over(transport, tmp_path) as bridge, Client(bridge.command()) as client:
        assert (await client.call_tool("search", {"z": "q"})).is_error
        assert [one.code for one in bridge.over] == ["job_not_active"]


async def test_malformed_and_oversized_lines_are_refused_and_the_session_goes_on(tmp_path: Path) -> None:
    """BR-082, BR-065."""
    async with bridge_over(transport_with(remote()), tmp_path) as bridge, raw_client(bridge) as client:
        await client.initialise()
        for line, code in (
            (b"{nonsense", -32700),
            (b'{"jsonrpc":"2.0","id":3,"id":4,"method":"ping"}', -32700),
            (b'{"jsonrpc":"2.0","id":3,"method":"ping","params":{"x":NaN}}', -32700),
            (b'{"jsonrpc":"1.0","id":3,"method":"ping"}', -32600),
            (b"x" * (16 * 1024 * 1024 + 1), -32600),
        ):
            await client.send(line)
            refused = json.loads(await within(20.0, client.receive()))
            assert (refused["id"], refused["error"]["code"]) == (None, code), line[:60]
        await client.send(b'{"jsonrpc":"2.0","id":9,"method":"ping"}')
        assert json.loads(await client.receive()) == {"jsonrpc": "2.0", "id": 9, "result": {}}


async def test_only_so_many_sessions_are_served_at_a_time(tmp_path: Path) -> None:
    async with bridge_over(transport_with(), tmp_path) as bridge, AsyncExitStack() as stack:
        served = [await stack.enter_async_context(raw_client(bridge)) for _ in range(MAX_SESSIONS)]
        for client in served:
            await client.initialise()
        async with raw_client(bridge) as late:
            assert await within(10.0, late.receive()) == b""
        await served[0].leave()

        async def served_again() -> None:
            async with raw_client(bridge) as next_one:
                await next_one.initialise()

        async with asyncio.timeout(10.0):
            while True:
                with suppress(AssertionError, ConnectionError):
                    await served_again()
                    break


async def test_secrets_stay_out_of_results_and_timeline(tmp_path: Path) -> None:
    """BR-121: known secret values, in a result and in what a failed call says."""

    async def leak(_params: dict[str, Any]) -> Any:
        return "KEY=s3cr3t-value"

    async with (
        bridge_over(transport_with(), tmp_path, [LocalTool("leak", leak)], secret="s3cr3t-value") as bridge,
        Client(bridge.command()) as client,
    ):
        result = await client.call_tool("leak", {"about": "s3cr3t-value"})
        assert result.content[0].model_dump()["text"] == "KEY=[redacted:SECRET]"
        told = [*await bridge.data("tool_use"), *await bridge.data("tool_result")]
        assert "s3cr3t-value" not in str(told)


async def test_without_a_worker_the_bridge_says_so_in_one_line(tmp_path: Path) -> None:
    async with bridge_over(transport_with(), tmp_path) as bridge:
        command = bridge.command()
    process = await asyncio.create_subprocess_exec(
        command.command,
        *command.args,
        env={**os.environ, **(command.env or {})},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await within(20.0, process.communicate())
    assert (process.returncode, out, err.count(b"\n")) == (1, b"", 1)
    assert b"portside run --exec" in err


async def test_the_bridge_process_holds_nothing_but_two_ends(tmp_path: Path) -> None:
    """PD-30: no library, no rule, no secret: what is in the agent's hands is a pipe."""
    program = (
        "import sys; import worker.__main__; from worker.bridge import pipe;"
        "print(sorted(name for name in sys.modules if name.split('.')[0] in"
        " {'mcp', 'httpx', 'pydantic', 'tool_registry'}))"
    )
    bridge = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        program,
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await within(20.0, bridge.communicate())
    assert out == b"[]\n"

"""What every transport must give, proven with the example server over memory, stdio, HTTP and SSE (DC-1)."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.memory import create_client_server_memory_streams

from tests.fakes import notes_over_http
from tests.fakes.notes_over_http import example
from tests.support.mcp import CONTEXT, Running, running, until
from tool_registry.errors import CallError
from tool_registry.mcp.config import ServerConfig
from tool_registry.mcp.log import ServerLog
from tool_registry.mcp.status import ServerState
from tool_registry.mcp.transport import Transport, Wire
from tool_registry.mcp.transports import default_transport
from tool_registry.registry import ToolRegistry

SERVER = Path(__file__).parents[2] / "examples" / "mcp-notes" / "server.py"
MEMORY = "memory"


class MemoryTransport:
    """The example server in a task of this loop."""

    kind = "memory"
    older = None

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Wire]:
        module = example()
        server = module.build_server(module.Notes(None))
        async with (
            create_client_server_memory_streams() as (ours, theirs),
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(server.run, *theirs, server.create_initialization_options())
            yield Wire(ours)
            tasks.cancel_scope.cancel()


def make_transport(config: ServerConfig, values: Mapping[str, str], log: ServerLog, auth: Any) -> Transport:
    return MemoryTransport() if config.command == MEMORY else default_transport(config, values, log, auth)


@pytest.fixture(scope="module")
def served() -> Generator[Callable[[str], str]]:
    """Gives the URL of the example served over HTTP in one of its ways; each is started when it is asked for."""
    started: dict[str, tuple[subprocess.Popen[bytes], str]] = {}

    def url_of(way: str) -> str:
        if way not in started:
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
            process = subprocess.Popen([sys.executable, notes_over_http.__file__, way, str(port)])
            started[way] = (process, f"http://127.0.0.1:{port}/mcp")
        return started[way][1]

    yield url_of
    for process, _ in started.values():
        process.terminate()
    for process, _ in started.values():
        process.wait(10)


WAYS = {
    "memory": ("", "2025-11-25"),
    "stdio": ("", "2025-11-25"),
    "http with sessions": ("sessions", "2025-11-25"),
    "http without sessions": ("stateless", "2025-11-25"),
    "http with JSON answers": ("json", "2025-11-25"),
    "http of 2026-07-28": ("2026", "2026-07-28"),
    "sse": ("sse", "2025-11-25"),
    "sse that is not named": ("sse", "2025-11-25"),
}
"""Each way to reach the example: how it is served, and the revision that is spoken over it."""


@pytest.fixture(params=list(WAYS))
async def notes(request: pytest.FixtureRequest) -> AsyncGenerator[Running]:
    entry: dict[str, Any]
    if request.param == "memory":
        entry = {"command": MEMORY}
    elif request.param == "stdio":
        entry = {"command": sys.executable, "args": [str(SERVER)]}
    else:
        entry = {"url": request.getfixturevalue("served")(WAYS[request.param][0])}
    if request.param == "sse":
        entry["type"] = "sse"
    async with running({"s": entry}, make_transport=make_transport, wait=False) as found:
        await until(lambda: found.status().state is ServerState.READY, within_s=30)
        found.spoken = WAYS[request.param][1]
        yield found


async def test_the_tools_are_offered_in_the_servers_order(notes: Running):
    assert notes.names() == ["search", "read", "add"]
    assert notes.status().tool_count == 3
    assert notes.status().protocol_version == notes.spoken
    assert notes.status().introduction.name == "notes"
    assert "tools" in notes.status().introduction.capabilities


async def test_schemas_reach_the_registry_byte_for_byte(notes: Running):
    """BR-055: `$defs` and `$ref` stay where the server put them."""
    given = {tool.name: tool.input_schema for tool in example().TOOLS}
    assert {name: notes.tool(name).definition.parameters for name in given} == given
    assert list(notes.tool("add").definition.parameters["properties"]) == ["title", "kind", "body", "tags"]


async def test_a_call_answers_text_and_structured_content(notes: Running):
    output = await notes.call("read", {"id": 1})
    assert not output.is_error
    assert output.raw["title"] == "How we name tests"
    assert '"How we name tests"' in output.result


async def test_a_tools_own_failure_is_a_failed_result_with_its_text(notes: Running):
    """BR-062: the model reads exactly what the tool said."""
    output = await notes.call("read", {"id": 999})
    assert output.is_error
    assert output.result.startswith("there is no note 999")


async def test_calls_side_by_side_get_their_own_answers(notes: Running):
    found: dict[int, Any] = {}

    async def read(number: int) -> None:
        found[number] = (await notes.call("read", {"id": 1 + number % 2})).raw["id"]

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(read, number)
    assert found == {number: 1 + number % 2 for number in range(20)}


async def test_the_instructions_are_labelled_as_a_third_partys(notes: Running):
    assert "text of a third party" in notes.instructions["mcp:s"]
    assert "Search the notes before you decide" in notes.instructions["mcp:s"]


async def test_a_removed_server_leaves_no_tools_and_takes_no_calls(notes: Running):
    tool = notes.tool("read")
    await notes.servers.remove("s")
    assert notes.offers["mcp:s"] == ()
    assert notes.servers.status() == ()
    with pytest.raises(CallError, match="not connected"):
        await tool.execute({"id": 1}, CONTEXT)


async def test_the_registry_takes_the_tools_under_the_servers_name(notes: Running):
    registry = ToolRegistry()
    replaced = registry.replace("mcp:s", notes.offers["mcp:s"], instructions=notes.instructions["mcp:s"])
    assert replaced.registered == ("s_add", "s_read", "s_search")
    assert replaced.refused == ()


async def test_a_call_of_two_megabytes_and_its_answer_arrive_whole(notes: Running):
    """BR-065: over every transport; bounding what a model sees is the executor's work."""
    body = "x" * 2_000_000
    refused = await notes.call("add", {"title": "long", "kind": "decision", "body": body})
    assert refused.is_error
    assert body in refused.result  # its refusal quotes what it was given

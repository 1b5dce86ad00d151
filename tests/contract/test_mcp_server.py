"""What every transport must give, proven with the example server over memory, stdio and streamable HTTP."""

from __future__ import annotations

import importlib.util
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import pytest
from mcp.shared.memory import create_client_server_memory_streams

from tests.support.mcp import CONTEXT, Running, running, until
from tool_registry.errors import CallError
from tool_registry.mcp.config import ServerConfig
from tool_registry.mcp.log import ServerLog
from tool_registry.mcp.servers import default_transport
from tool_registry.mcp.status import ServerState
from tool_registry.mcp.transport import Transport, Wire
from tool_registry.registry import ToolRegistry

SERVER = Path(__file__).parents[2] / "examples" / "mcp-notes" / "server.py"
MEMORY = "memory"


def _example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mcp_notes", SERVER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class MemoryTransport:
    """The example server in a task of this loop."""

    kind = "memory"

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Wire]:
        example = _example()
        server = example.build_server(example.Notes(None))
        async with (
            create_client_server_memory_streams() as (ours, theirs),
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(server.run, *theirs, server.create_initialization_options())
            yield Wire(ours)
            tasks.cancel_scope.cancel()


def make_transport(config: ServerConfig, values: Mapping[str, str], log: ServerLog) -> Transport:
    return MemoryTransport() if config.command == MEMORY else default_transport(config, values, log)


@pytest.fixture(scope="module")
def served_url() -> Generator[str]:
    """The example server over HTTP, as a user starts it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, str(SERVER), "--http", str(port)])
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(10)


@pytest.fixture(params=["memory", "stdio", "http"])
async def notes(request: pytest.FixtureRequest) -> AsyncGenerator[Running]:
    entries: dict[str, dict[str, Any]] = {
        "memory": {"command": MEMORY},
        "stdio": {"command": sys.executable, "args": [str(SERVER)]},
    }
    entry = entries.get(request.param) or {"url": request.getfixturevalue("served_url")}
    async with running({"s": entry}, make_transport=make_transport, wait=False) as found:
        await until(lambda: found.status().state is ServerState.READY, within_s=30)
        yield found


async def test_the_tools_are_offered_in_the_servers_order(notes: Running):
    assert notes.names() == ["search", "read", "add"]
    assert notes.status().tool_count == 3
    assert notes.status().protocol_version == "2025-11-25"


async def test_schemas_reach_the_registry_byte_for_byte(notes: Running):
    """BR-055: `$defs` and `$ref` stay where the server put them."""
    given = {tool.name: tool.input_schema for tool in _example().TOOLS}
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

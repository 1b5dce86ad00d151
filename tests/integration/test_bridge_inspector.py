"""PD-30: the MCP project's own inspector, a client that nobody here wrote, against the bridge."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.local_tools import LocalTool
from tests.fakes.transport import MemoryTransport
from tests.support.bridge import bridge_over
from tests.support.command_line import ROOT
from tests.support.deadline import within
from worker.command.announcement import Announcement
from worker.protocol.tools import WireToolDefinition

pytestmark = pytest.mark.npm
SCHEMA: dict[str, Any] = {
    "required": ["query"],
    "properties": {"query": {"type": "string", "description": "ü"}, "limit": {"default": None}},
    "type": "object",
}


async def inspect(inspector: str, config: Path, *asked: str) -> Any:
    process = await asyncio.create_subprocess_exec(
        inspector,
        *("--cli", "--config", str(config), "--server", "portside"),
        *asked,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await within(60.0, process.communicate())
    assert process.returncode == 0, (out, err)
    return json.loads(out)


async def test_the_inspector_lists_and_calls_the_job_s_tools(tmp_path: Path, mcp_inspector: str) -> None:
    async def answer(params: dict[str, Any]) -> Any:
        return params["command"].upper()

    transport = MemoryTransport()
    transport.tools = [WireToolDefinition(name="search", description="does search", parameters=SCHEMA)]
    async with bridge_over(transport, tmp_path, [LocalTool("shell", answer)]) as bridge:
        said = Announcement("t", None, "http://127.0.0.1:1", bridge.socket, tmp_path / "said")
        said.write()
        listed = await inspect(mcp_inspector, said.mcp_file, "--method", "tools/list")
        tools = {tool["name"]: tool for tool in listed["tools"]}
        assert tools["search"]["description"] == "does search"
        assert tools["search"]["inputSchema"] == SCHEMA
        called = await inspect(
            mcp_inspector,
            said.mcp_file,
            *("--method", "tools/call", "--tool-name", "shell"),
            "--tool-arg",
            "command=ls",
        )
        assert called["content"] == [{"type": "text", "text": "LS"}]
        far = await inspect(
            mcp_inspector,
            said.mcp_file,
            *("--method", "tools/call", "--tool-name", "search"),
            "--tool-arg",
            "query=q",
        )
        assert far["content"][0]["text"] == "ran"
        assert [request.params for _, request, _ in transport.executed] == [{"query": "q"}]

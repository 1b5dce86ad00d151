"""PD-43: the MCP project's own inspector, a client that nobody here wrote, as an agent from outside."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.deadline import within
from tests.support.orchestrator import wired
from tests.support.outside import agent, on_loopback, token_for

pytestmark = pytest.mark.npm


async def inspect(inspector: str, url: str, token: str, *asked: str) -> Any:
    process = await asyncio.create_subprocess_exec(
        inspector,
        *("--cli", url, "--transport", "http", "--header", f"Authorization: Bearer {token}"),
        *asked,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await within(60.0, process.communicate())
    assert process.returncode == 0, (out, err)
    return json.loads(out)


async def test_the_inspector_lists_the_network_s_tools_and_asks_a_peer(
    home: Path, mcp_inspector: str
) -> None:
    """Its client holds results to the schemas that were listed, as ours does."""
    async with wired(home, listen="127.0.0.1:0") as service, agent(service, "helper") as helper:
        await helper("network_whoami")
        url, token = service.running.mcp_url + "/mcp", await token_for(service, "inspector")
        listed = await inspect(mcp_inspector, url, token, "--method", "tools/list")
        tools = {tool["name"]: tool for tool in listed["tools"]}
        entry = service.running.registry.get("network_ask")
        assert entry is not None
        assert tools["network_ask"]["inputSchema"] == entry.definition.parameters
        assert "outputSchema" in tools["network_ask"]
        asked = await inspect(
            mcp_inspector,
            url,
            token,
            *("--method", "tools/call", "--tool-name", "network_ask"),
            *("--tool-arg", "body=how?", "--tool-arg", "toAgent=helper"),
        )
        assert asked["structuredContent"]["recipients"][0]["agent"] == "helper"
        (item,) = (await helper("network_inbox"))["items"]
        assert (item["from"]["agent"], item["body"]) == ("inspector", "how?")


async def test_the_inspector_lists_and_calls_a_job_s_tools_from_where_its_worker_is(
    home: Path, mcp_inspector: str
) -> None:
    """HW-5: over the job's socket, which a client that knows TCP only reaches by a relay."""
    async with wired(home) as service:
        worker = await service.worker(agent="coder")
        async with on_loopback(worker.socket) as address:
            url = f"{address}/worker/{worker.job_id}/mcp"
            listed = await inspect(mcp_inspector, url, worker.token, "--method", "tools/list")
            catalogue = (await worker.get("tools/catalog")).json()["tools"]
            assert {tool["name"] for tool in listed["tools"]} == {tool["name"] for tool in catalogue}
            called = await inspect(
                mcp_inspector,
                url,
                worker.token,
                *("--method", "tools/call", "--tool-name", "network_whoami"),
            )
            assert called["structuredContent"]["instance"]["job_id"] == worker.job_id

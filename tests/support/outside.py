"""Agents from outside, by the official MCP client over TCP."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import httpx2
from mcp import Client
from mcp.client.client import ConnectMode
from mcp.client.streamable_http import streamable_http_client

from tests.support.orchestrator import Wired


class Refused(Exception):
    """A call's failed result; `code` is what its text begins with, or its JSON says."""

    def __init__(self, text: str, code: str) -> None:
        super().__init__(text)
        self.code = code


@dataclass
class Agent:
    """A connected agent."""

    client: Client

    async def tools(self) -> list[str]:
        return [tool.name for tool in (await self.client.list_tools()).tools]

    async def __call__(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool; the client has checked that the answer is one that the tool promises.

        Raises:
            Refused: the call failed.
        """
        result = await self.client.call_tool(name, arguments)
        text = result.content[0].model_dump()["text"]
        if result.is_error:
            problem = (result.meta or {}).get("portside/problem")
            raise Refused(
                text, problem["code"] if problem else text.partition('"code":"')[2].partition('"')[0]
            )
        return cast("dict[str, Any]", result.model_dump(mode="json")["structured_content"])

    async def instance_id(self) -> str:
        return (await self("network_whoami"))["instance"]["instance_id"]


async def token_for(
    service: Wired, name: str, holder: str = "agent", network: str = "", days: float = 1.0
) -> str:
    """A fresh token."""
    if holder == "representative":
        put = await service.operator.put(f"/api/v1/representatives/{name}", json={"person": "operator"})
        assert put.status_code == 200, put.text
    asked = {"holder": holder, "name": name, "network": network, "days": days}
    answer = await service.operator.post("/api/v1/tokens", json=asked)
    assert answer.status_code == 201, answer.text
    return answer.json()["token"]


@asynccontextmanager
async def connected(
    url: str, token: str, path: str = "/mcp", mode: ConnectMode = "auto"
) -> AsyncGenerator[Agent]:
    """The official client, connected with a token."""
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30.0) as http,
        Client(streamable_http_client(url + path, http_client=http), mode=mode) as client,
    ):
        yield Agent(client)


@asynccontextmanager
async def representative(
    service: Wired, name: str, mode: ConnectMode = "auto", **grants: list[str]
) -> AsyncGenerator[Agent]:
    """A representative of the operator with these grants, by network, connected."""
    token = await token_for(service, name, "representative")
    for network, rights in grants.items():
        path = f"/api/v1/representatives/{name}/grants/{network}"
        assert (await service.operator.put(path, json={"rights": rights})).status_code == 200
    async with connected(service.running.mcp_url, token, "/mcp/control", mode) as found:
        yield found


@asynccontextmanager
async def agent(
    service: Wired, name: str, path: str = "/mcp", mode: ConnectMode = "auto", network: str = ""
) -> AsyncGenerator[Agent]:
    """An agent with a token of its own, connected."""
    token = await token_for(service, name, network=network)
    async with connected(service.running.mcp_url, token, path, mode) as found:
        yield found

"""Agents from outside, by the official MCP client over TCP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import httpx2
from mcp import Client
from mcp.client.client import ConnectMode
from mcp.client.session import MessageHandlerFnT
from mcp.client.streamable_http import streamable_http_client

from tests.support.orchestrator import Wired, WorkerHands


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
    url: str,
    token: str,
    path: str = "/mcp",
    mode: ConnectMode = "auto",
    *,
    socket: Path | None = None,
    on_message: MessageHandlerFnT | None = None,
) -> AsyncGenerator[Agent]:
    """The official client, connected with a token; over a unix socket where one is given."""
    headers = {"Authorization": f"Bearer {token}"}
    over = httpx2.AsyncHTTPTransport(uds=str(socket)) if socket else None
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30.0, transport=over) as http,
        Client(
            streamable_http_client(url + path, http_client=http), mode=mode, message_handler=on_message
        ) as client,
    ):
        yield Agent(client)


def of_worker(
    worker: WorkerHands, mode: ConnectMode = "auto", on_message: MessageHandlerFnT | None = None
) -> AbstractAsyncContextManager[Agent]:
    """The official client in a job's container: over the job's socket, with its token."""
    path = f"/worker/{worker.job_id}/mcp"
    return connected("http://portside", worker.token, path, mode, socket=worker.socket, on_message=on_message)


@asynccontextmanager
async def on_loopback(socket: Path) -> AsyncGenerator[str]:
    """The address of a relay to a unix socket, for clients that know TCP only."""

    relays: set[asyncio.Task[None]] = set()

    def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        relays.add(asyncio.ensure_future(_relay(socket, reader, writer)))

    server = await asyncio.start_server(accepted, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    for relay in relays:
        relay.cancel()
    await asyncio.gather(*relays, return_exceptions=True)


async def _relay(socket: Path, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass bytes both ways until either side has ended."""
    inner, outer = await asyncio.open_unix_connection(str(socket))
    pumps = {asyncio.ensure_future(_pump(reader, outer)), asyncio.ensure_future(_pump(inner, writer))}
    try:
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        for end in (outer, writer):
            end.close()
        await asyncio.gather(outer.wait_closed(), writer.wait_closed(), return_exceptions=True)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()


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

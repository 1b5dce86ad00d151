"""What tests of MCP servers share."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import psutil

from tool_registry.context import ToolContext
from tool_registry.mcp.config import McpConfig
from tool_registry.mcp.servers import McpServers
from tool_registry.mcp.status import ServerState, ServerStatus
from tool_registry.mcp.stdio import GUARD
from tool_registry.mcp.transports import MakeTransport, default_transport
from tool_registry.output import ToolOutput
from tool_registry.registry import Offer, Replaced, ToolRegistry
from tool_registry.tool import Tool

CONTEXT = ToolContext(job_id="job-1", call_id="call-1")


async def until(holds: Callable[[], object], within_s: float = 10.0) -> None:
    """Return as soon as the condition holds; fail when it does not in time."""
    with anyio.fail_after(within_s):
        while not holds():  # noqa: ASYNC110 - processes and servers have no event to wait for
            await anyio.sleep(0.01)


async def no_secret(_name: str) -> str | None:
    return None


def alive(pid: int) -> bool:
    """Whether a process is there and not just waiting to be reaped by somebody else's parent."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class Running:
    """Servers at work, and what they have pushed."""

    def __init__(self) -> None:
        self.servers: McpServers
        self.spoken = ""
        self.registry = ToolRegistry()
        self.offers: dict[str, Sequence[Offer]] = {}
        self.instructions: dict[str, str] = {}
        self.pushes: list[tuple[str, list[str]]] = []

    def on_tools(self, owner: str, offers: Sequence[Offer], instructions: str) -> Replaced:
        self.offers[owner] = offers
        self.instructions[owner] = instructions
        self.pushes.append((owner, [offer.tool.traits.original_name for offer in offers]))
        return self.registry.replace(owner, offers, instructions=instructions)

    def names(self, server: str = "s") -> list[str]:
        return [offer.tool.traits.original_name for offer in self.offers.get(f"mcp:{server}", ())]

    def tool(self, name: str, server: str = "s") -> Tool:
        return next(
            offer.tool for offer in self.offers[f"mcp:{server}"] if offer.tool.traits.original_name == name
        )

    async def call(self, name: str, params: dict[str, Any] | None = None, server: str = "s") -> ToolOutput:
        return await self.tool(name, server).execute(params or {}, CONTEXT)

    def status(self, server: str = "s") -> ServerStatus:
        return next(status for status in self.servers.status() if status.name == server)

    async def settled(self, server: str = "s", state: ServerState = ServerState.READY) -> ServerStatus:
        await until(lambda: self.status(server).state is state)
        return self.status(server)


@asynccontextmanager
async def running(
    servers: Mapping[str, Mapping[str, Any]],
    *,
    resolve_secret: Callable[[str], Awaitable[str | None]] = no_secret,
    make_transport: MakeTransport = default_transport,
    wait: bool = True,
) -> AsyncGenerator[Running]:
    """Start these servers; with `wait`, all of them are ready when the context is entered.

    When it is left, nothing that it started runs any more.
    """
    found = Running()
    before = _descendants()
    config = McpConfig.model_validate({"mcpServers": servers})
    found.servers = McpServers(
        config, on_tools=found.on_tools, resolve_secret=resolve_secret, make_transport=make_transport
    )
    async with found.servers:
        for name in servers if wait else ():
            await found.settled(name)
        yield found
    left = [line for pid, line in _descendants().items() if pid not in before]
    assert left == [], "servers were left running"


def _descendants() -> dict[int, str]:
    """Guards of servers, and whatever runs below them, by process number."""
    found: dict[int, str] = {}
    for guard in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):
            if str(GUARD) in guard.cmdline():
                found |= {
                    one.pid: " ".join(one.cmdline()) for one in (guard, *guard.children(recursive=True))
                }
    return found

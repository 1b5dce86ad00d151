"""A bridge over a transport in memory, and clients of it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp.client.stdio import StdioServerParameters

from tests.fakes.transport import MemoryTransport
from tests.support.command_line import ROOT
from tool_registry.context import ToolContext
from tool_registry.errors import PortsideError
from tool_registry.redaction import Redactor
from tool_registry.tool import Tool
from worker.bridge.calls import BridgeCalls, CallerOf
from worker.bridge.gate import BridgeGate
from worker.bridge.server import BridgeSession
from worker.call_events import CallEvents
from worker.clock import SystemClock
from worker.events import EventSink
from worker.surface import ToolSurface


@dataclass
class Bridge:
    """A gate that listens, and what it works with.

    Attributes:
        over: refusals that said that the job is over.
    """

    socket: Path
    transport: MemoryTransport
    surface: ToolSurface
    events: EventSink
    over: list[PortsideError]

    def command(self) -> StdioServerParameters:
        """How an agent starts the bridge."""
        return StdioServerParameters(
            command=sys.executable, args=["-P", *self.arguments()], env={"PYTHONPATH": str(ROOT)}
        )

    def arguments(self) -> list[str]:
        return ["-m", "worker", "mcp", "--socket", str(self.socket)]

    async def data(self, kind: str) -> list[Any]:
        """The data of the timeline's events of one type."""
        assert await self.events.flush(5.0)
        return self.transport.data(kind)


@asynccontextmanager
async def bridge_over(
    transport: MemoryTransport, directory: Path, local: Iterable[Tool] = (), *, secret: str = ""
) -> AsyncGenerator[Bridge]:
    """A bridge whose job has these local tools and the transport's remote ones."""
    clock, redactor = SystemClock(), Redactor({"SECRET": secret} if secret else None, patterns=False)
    events = EventSink(transport, clock)
    surface = ToolSurface.of_job(
        transport,
        attempt=1,
        output_dir=directory / "out",
        clock=clock,
        redactor=redactor,
        explainer=None,
    )
    surface.add_local(local)
    over: list[PortsideError] = []
    context = ToolContext("job-1", "", "coder", "i-1", "local")
    calls = BridgeCalls(surface, CallEvents(events, redactor), CallerOf(context, lambda: 0, over.append))

    async def refresh() -> None:
        await surface.refresh()

    await refresh()

    async def session() -> BridgeSession:
        return BridgeSession(surface, calls, refresh)

    gate = BridgeGate(directory / "b.sock", session)
    await gate.open()
    try:
        yield Bridge(directory / "b.sock", transport, surface, events, over)
    finally:
        await gate.close()


class RawClient:
    """A client that writes lines itself, so that it can misbehave."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, line: bytes) -> None:
        self._writer.write(line + b"\n")
        await self._writer.drain()

    async def receive(self) -> bytes:
        """The next line; empty at the end."""
        return await self._reader.readline()

    async def leave(self) -> None:
        """Hang up, and wait for the other side to do so too."""
        self._writer.write_eof()
        assert await self._reader.read() == b""

    async def initialise(self) -> None:
        await self.send(
            b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
            b'"capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}'
        )
        assert b'"serverInfo"' in await self.receive()
        await self.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')


@asynccontextmanager
async def raw_client(bridge: Bridge) -> AsyncGenerator[RawClient]:
    reader, writer = await asyncio.open_unix_connection(str(bridge.socket), limit=2**26)
    try:
        yield RawClient(reader, writer)
    finally:
        writer.close()
        await writer.wait_closed()

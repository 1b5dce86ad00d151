"""The composition root: reads as the wiring diagram, and is the only module that sees everything."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass

from starlette.types import ASGIApp

from container.adapters.docker.engine import DockerEngine
from orchestrator.adapters.sockets.http_listener import Marked
from orchestrator.adapters.sockets.tcp import LoopbackSocket
from orchestrator.adapters.sockets.unix import UnixSocket
from orchestrator.home import operator_token
from orchestrator.http.app import AppServices, create_app
from orchestrator.http.auth import OperatorGate
from orchestrator.http.mcp_route import OVER_TCP, McpRoute, McpServices, nothing_else
from orchestrator.http.tunnel_door import TunnelDoor
from orchestrator.services.live_tools import LiveTools
from orchestrator.services.network_sweep import NetworkSweep
from orchestrator.settings import Settings
from orchestrator.wiring.base import Base, open_base
from orchestrator.wiring.engines import engine_places, starts_of
from orchestrator.wiring.jobs import Jobs, Outside, in_process_of, open_jobs
from orchestrator.wiring.services import services_of
from orchestrator.wiring.tools import Tools, fill, open_tools, watch
from tool_registry.registry import ToolRegistry


@dataclass(frozen=True, slots=True)
class Orchestrator:
    """An orchestrator; close it to end it.

    Attributes:
        app: the ASGI application.
        registry: the tools; whoever embeds Portside adds its own here.
        mcp_url: where agents from outside reach the MCP endpoints; "" where nothing listens for them.
    """

    settings: Settings
    app: ASGIApp
    registry: ToolRegistry
    stack: AsyncExitStack
    mcp_url: str = ""

    async def close(self) -> None:
        """Stop; containers that run go on and are adopted by the next run."""
        await self.stack.aclose()


async def start(settings: Settings, engine: DockerEngine) -> Orchestrator:
    """Wire everything over a Docker engine, look after jobs and serve on `settings.api_socket`.

    `own_home` comes first.

    Raises:
        PortsideError, StoreError, OSError: it can't start; nothing is left running.
    """
    return await start_over(settings, Outside(engine, starts_of(settings, engine).start_in))


async def start_over(settings: Settings, outside: Outside) -> Orchestrator:
    """The same over any engine, which is closed at the end."""
    async with AsyncExitStack() as stack:
        stack.push_async_callback(outside.engine.close)
        return await _wire(settings, outside, stack)


async def open_desk(settings: Settings, *, tools: bool) -> Orchestrator:
    """Wire everything, but look after no job and serve on no socket: to look at what is there.

    Any number may be open beside a running orchestrator.

    Args:
        settings: which home.
        tools: load WASM tools and connect MCP servers.

    Raises:
        PortsideError, StoreError, OSError: as `start`.
    """
    async with AsyncExitStack() as stack:
        engine = DockerEngine(engine_places(settings)[0].endpoint)
        stack.push_async_callback(engine.close)
        base = await open_base(settings, stack)
        desk = await open_tools(base)
        if tools:
            await fill(desk)
        outside = Outside(engine, starts_of(settings, engine).start_in)
        app = create_app(await _services(base, desk, await open_jobs(base, desk, outside)))
        return Orchestrator(settings, app, desk.registry, stack.pop_all())


async def _wire(settings: Settings, outside: Outside, stack: AsyncExitStack) -> Orchestrator:
    base = await open_base(settings, stack)
    tools = await open_tools(base)
    await fill(tools)
    live = LiveTools(watch(settings), [tools.folder.refresh, tools.mcp_file.reload, tools.agent_file.reload])
    live.start()
    stack.push_async_callback(live.close)
    jobs = await open_jobs(base, tools, outside)
    services = await _services(base, tools, jobs)
    app = create_app(services)
    jobs.sockets.serve(app, TunnelDoor(jobs.tokens, jobs.egress))
    await jobs.supervisor.start()
    stack.push_async_callback(jobs.supervisor.close)
    sweep = NetworkSweep(tools.network, tools.arrivals.announce, autostart=jobs.autostart)
    tools.arrivals.listen(sweep.wake)
    sweep.start()
    stack.push_async_callback(sweep.close)
    in_process = in_process_of(base, tools, jobs, app)
    await in_process.start()
    jobs.wakes.append(in_process.wake)
    stack.push_async_callback(in_process.close)
    api = UnixSocket(app, settings.api_socket, mode=0o600)
    await api.open()
    stack.push_async_callback(api.close)
    mcp_url = await _serve_mcp(services.mcp, settings, stack)
    stack.callback(jobs.parts.timeline.close)
    return Orchestrator(settings, app, tools.registry, stack.pop_all(), mcp_url)


async def _serve_mcp(mcp: McpServices, settings: Settings, stack: AsyncExitStack) -> str:
    """Take agents in; on the sockets that are open, and at an address where one is set."""
    await mcp.sessions.start()
    stack.push_async_callback(mcp.sessions.close)
    await mcp.server.start()
    url = ""
    if settings.listen:
        listening = LoopbackSocket(Marked(McpRoute(nothing_else, mcp), {OVER_TCP: True}), settings.listen)
        await listening.open()
        stack.push_async_callback(listening.close)
        url = listening.url
    # Before any socket: an open stream ends with its session.
    stack.push_async_callback(mcp.server.close)
    return url


async def _services(base: Base, tools: Tools, jobs: Jobs) -> AppServices:
    gate = OperatorGate(await asyncio.to_thread(operator_token, base.settings.operator_token_file))
    return services_of(base, tools, jobs, gate)

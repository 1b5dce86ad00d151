"""An MCP session over the job's tool surface, by the SDK's low-level server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

from tool_registry.mcp_listing import tool_of
from worker.bridge.calls import BridgeCalls
from worker.bridge.frames import message_streams
from worker.surface import ToolSurface

_NAME = "portside"
_LIST = "tools/list"
_MAX_SUBSCRIPTIONS = 16

Context = ServerRequestContext[Any, Any]


class BridgeSession:
    """One client's session.

    Args:
        surface: what is listed and called.
        calls: runs the calls.
        refresh: brings the surface up to the orchestrator's catalogue; never raises.
    """

    def __init__(
        self, surface: ToolSurface, calls: BridgeCalls, refresh: Callable[[], Awaitable[None]]
    ) -> None:
        self._surface = surface
        self._calls = calls
        self._refresh = refresh
        self._changed = asyncio.Event()
        self._bus = InMemorySubscriptionBus()
        self._client: ServerSession | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Speak with a client until it leaves."""
        server = self._server()
        options = server.create_initialization_options(NotificationOptions(tools_changed=True))
        unsubscribe = self._surface.subscribe(self._changed.set)
        announcing = asyncio.create_task(self._announce_changes())
        try:
            async with message_streams(reader, writer) as (incoming, outgoing):
                await server.run(incoming, outgoing, options)
        finally:
            unsubscribe()
            announcing.cancel()
            await asyncio.gather(announcing, return_exceptions=True)

    def _server(self) -> Server[Any]:
        server: Server[Any] = Server(
            _NAME,
            version="1",
            instructions="\n\n".join(self._surface.instructions) or None,
            on_list_tools=_none_yet,
            on_call_tool=self._call,
            on_subscriptions_listen=ListenHandler(self._bus, max_subscriptions=_MAX_SUBSCRIPTIONS),
        )
        server.add_notification_handler(
            "notifications/initialized", mcp_types.NotificationParams, self._initialized
        )
        server.middleware = [self._list_as_given]
        return server

    async def _list_as_given(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Put the tools into the SDK's answer when it is done: it changes the key order of schemas."""
        answer = await call_next(ctx)
        if ctx.method != _LIST or not isinstance(answer, dict):
            return answer
        await self._refresh()
        self._changed.clear()
        return {**answer, "tools": [tool_of(entry) for entry in self._surface.entries()]}

    async def _call(self, _ctx: Context, params: mcp_types.CallToolRequestParams) -> mcp_types.CallToolResult:
        result = await self._calls.run(params.name, params.arguments or {})
        return mcp_types.CallToolResult.model_validate(result, by_name=False)

    async def _initialized(self, ctx: Context, _params: mcp_types.NotificationParams) -> None:
        self._client = ctx.session

    async def _announce_changes(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            if self._client is not None:
                await self._client.send_tool_list_changed()
            await self._bus.publish(ToolsListChanged())


async def _none_yet(
    _ctx: Context, _params: mcp_types.PaginatedRequestParams | None
) -> mcp_types.ListToolsResult:
    return mcp_types.ListToolsResult(tools=[])

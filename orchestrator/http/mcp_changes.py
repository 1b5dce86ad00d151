"""What clients of the MCP endpoints are told when the list of their tools changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from mcp.server.subscriptions import ServerEvent, ToolsListChanged
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestrator.services.mcp_callers import McpCaller
from tool_registry.definition import ToolDefinition

Subscribe = Callable[[Callable[[], None]], Callable[[], None]]
"""Registers what is called after every change of the registry; answers what ends that."""

_LIST_CHANGED = (
    b'event: message\r\ndata: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\r\n\r\n'
)


class CallersChanges:
    """The SDK's `SubscriptionBus` of one caller: it hears of changes in what that caller sees."""

    def __init__(self, caller: McpCaller, subscribe: Subscribe) -> None:
        self._caller = caller
        self._subscribe = subscribe

    async def publish(self, event: ServerEvent) -> None:
        """Nobody publishes here: the registry does."""

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Tell a listener from now on."""
        seen = self._seen()

        def on_change() -> None:
            nonlocal seen
            before, seen = seen, self._seen()
            if seen != before:
                listener(ToolsListChanged())

        return self._subscribe(on_change)

    def _seen(self) -> list[ToolDefinition]:
        return [one.definition for one in self._caller.entries()]


async def serve_stream(
    app: ASGIApp, changes: CallersChanges, scope: Scope, receive: Receive, send: Send
) -> None:
    """Serve a session's stream of the older revisions, and put the caller's changes into it.

    The SDK tells of no session's end, so that nobody could say when to stop; the stream's own request does.
    """
    changed = asyncio.Event()
    telling: asyncio.Task[None] | None = None

    async def tell() -> None:
        while await changed.wait():
            changed.clear()
            await send({"type": "http.response.body", "body": _LIST_CHANGED, "more_body": True})

    async def begun(message: Message) -> None:
        nonlocal telling
        await send(message)
        if message.get("status") == 200:
            telling = asyncio.create_task(tell())

    unsubscribe = changes.subscribe(lambda _event: changed.set())
    try:
        await app(scope, receive, begun)
    finally:
        unsubscribe()
        if telling is not None:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)

"""One conversation with one server: handshake, tool lists and calls over the SDK's dispatcher.

The SDK's `ClientSession` negotiates the version, answers pings and owns the reader. Tool lists and tool
results do not go through its models: they refuse a whole page for one odd schema, and a whole result for one
block of a kind they do not know. Those two requests are sent through the same dispatcher and taken as JSON.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, cast

import anyio
import anyio.abc
import mcp_types as types
from mcp.client.session import ClientSession
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost, listen
from mcp.shared.dispatcher import (
    CallOptions,
    DispatchContext,
    OnNotify,
    OnNotifyIntercept,
    OnRequest,
    ProgressFnT,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from tool_registry.mcp.status import Introduction
from tool_registry.mcp.transport import ServerUnreachable, Wire

CLIENT_INFO = types.Implementation(name="portside", version="0.1.0")
_NO_HANDSHAKE = frozenset({types.METHOD_NOT_FOUND, types.UNSUPPORTED_PROTOCOL_VERSION})
_ANSWERED = frozenset({"ping"})

Progress = Callable[[float, float | None, str | None], None]


class Notices:
    """What a server said unasked, and that it is gone: read by the connection, set by the reader."""

    def __init__(self, on_log: Callable[[str], None]) -> None:
        self.on_log = on_log
        self.list_changed = False
        self.ended = False
        self._news = anyio.Event()

    def tools_changed(self) -> None:
        """The tool list is stale."""
        self.list_changed = True
        self._news.set()

    def end(self) -> None:
        """Nothing more can be sent or received."""
        self.ended = True
        self._news.set()

    async def wait(self) -> None:
        """Until there is news since the last wait."""
        await self._news.wait()
        self._news = anyio.Event()


class _Dispatcher(JSONRPCDispatcher[TransportContext]):
    """The SDK's dispatcher, which answers only what Portside supports and notes two notifications."""

    def __init__(self, wire: Wire, notices: Notices) -> None:
        super().__init__(*wire.streams)
        self._notices = notices

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Drive the reader; say so when it ends."""

        def intercept(method: str, params: Mapping[str, Any] | None) -> bool:
            return (on_notify_intercept is not None and on_notify_intercept(method, params)) or self._note(
                method, params
            )

        try:
            await super().run(partial(_answer, on_request), on_notify, intercept, task_status=task_status)
        finally:
            self._notices.end()

    def _note(self, method: str, params: Mapping[str, Any] | None) -> bool:
        if method == "notifications/tools/list_changed":
            self._notices.tools_changed()
        elif method == "notifications/message":
            self._notices.on_log(str((params or {}).get("data", ""))[:2_000])
        else:
            return False
        return True


async def _answer(
    on_request: OnRequest,
    context: DispatchContext[TransportContext],
    method: str,
    params: Mapping[str, Any] | None,
) -> dict[str, Any]:
    if method not in _ANSWERED:
        raise MCPError(types.METHOD_NOT_FOUND, f"Portside does not offer {method[:100]}")
    return await on_request(context, method, params)


class Session:
    """A conversation after its handshake.

    Attributes:
        version: the negotiated protocol version.
        instructions: the server's text about its tools.
        introduction: who it says it is.
    """

    def __init__(self, client: ClientSession, dispatcher: _Dispatcher, wire: Wire, notices: Notices) -> None:
        self.wire = wire
        self.notices = notices
        self.version = client.protocol_version or ""
        self.instructions = client.instructions or ""
        self.introduction = _introduction(client)
        self._dispatcher = dispatcher
        self._modern = self.version in MODERN_PROTOCOL_VERSIONS
        self._argument_headers: dict[str, dict[tuple[str, ...], str]] = {}

    async def tool_page(self, cursor: str | None) -> dict[str, Any]:
        """One page of `tools/list`, as the server sent it.

        Raises:
            MCPError: the server refused, or is gone.
        """
        return await self._send("tools/list", {} if cursor is None else {"cursor": cursor})

    def learn_headers(self, tool: str, schema: Mapping[str, Any]) -> str | None:
        """Note which arguments of a tool travel as HTTP headers too (2026-07-28).

        Returns:
            Why the tool can't be used; None when it can.
        """
        if not self._modern:
            return None
        problem = find_invalid_x_mcp_header(schema)
        if problem is None:
            self._argument_headers[tool] = x_mcp_header_map(schema)
        return problem

    async def call(self, tool: str, arguments: Mapping[str, Any], report: Progress) -> dict[str, Any]:
        """Call a tool; the answer as the server sent it. Cancelling tells the server.

        Raises:
            MCPError: the server refused, or is gone.
        """

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            report(progress, total, message)

        headers: dict[str, str] = {}
        if self._modern:
            headers[MCP_NAME_HEADER] = encode_header_value(tool)
            headers.update(mcp_param_headers(self._argument_headers.get(tool, {}), arguments))
        params = {"name": tool, "arguments": dict(arguments)}
        return await self._send("tools/call", params, headers=headers, on_progress=on_progress)

    async def _send(
        self,
        method: str,
        params: dict[str, Any],
        *,
        headers: Mapping[str, str] | None = None,
        on_progress: ProgressFnT | None = None,
    ) -> dict[str, Any]:
        options: CallOptions = {"headers": {MCP_PROTOCOL_VERSION_HEADER: self.version, **(headers or {})}}
        if self._modern:
            options["headers"][MCP_METHOD_HEADER] = method
            params["_meta"] = {
                types.PROTOCOL_VERSION_META_KEY: self.version,
                types.CLIENT_INFO_META_KEY: CLIENT_INFO.model_dump(
                    by_alias=True, mode="json", exclude_none=True
                ),
                types.CLIENT_CAPABILITIES_META_KEY: {},
            }
        if on_progress is not None:
            options["on_progress"] = on_progress
        return await self._dispatcher.send_raw_request(method, params, options)


@asynccontextmanager
async def open_session(wire: Wire, notices: Notices) -> AsyncGenerator[Session]:
    """Shake hands; the session lives as long as the context.

    `initialize` goes first and `server/discover` (2026-07-28) only to a server that does not know it: the
    other order costs ten seconds with every older server that ignores what it does not know.

    Raises:
        ServerUnreachable: the handshake failed.
        MCPError: the server is gone, or refused.
    """
    dispatcher = _Dispatcher(wire, notices)
    async with ClientSession(dispatcher=dispatcher, client_info=CLIENT_INFO) as client:
        await _shake_hands(client)
        session = Session(client, dispatcher, wire, notices)
        if session.version in MODERN_PROTOCOL_VERSIONS and _announces_changes(client):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_listen, client)
                yield session
                tasks.cancel_scope.cancel()
        else:
            yield session


async def _shake_hands(client: ClientSession) -> None:
    try:
        try:
            await client.initialize()
        except MCPError as error:
            if error.code not in _NO_HANDSHAKE:
                raise
            await client.discover()
    except (ValidationError, RuntimeError) as error:
        raise ServerUnreachable(f"its handshake breaks the protocol: {str(error)[:300]}") from None


def _introduction(client: ClientSession) -> Introduction:
    info, capabilities = client.server_info, client.server_capabilities
    offered = capabilities.model_dump(by_alias=True, exclude_none=True) if capabilities else {}
    return Introduction(
        name=info.name[:200] if info else "",
        version=info.version[:100] if info else "",
        capabilities=tuple(sorted(offered)),
        announces_changes=_announces_changes(client),
    )


def _announces_changes(client: ClientSession) -> bool:
    capabilities = client.server_capabilities
    return bool(capabilities and capabilities.tools and capabilities.tools.list_changed)


async def _listen(client: ClientSession) -> None:
    """Keep the 2026-07-28 stream of changes open; the events arrive as notifications as well."""
    try:
        async with listen(client, tools_list_changed=True) as changes:
            async for _ in changes:
                pass
    except (MCPError, SubscriptionLost, ListenNotSupportedError, TimeoutError):
        return  # a server that announces changes and then does not send them is used without


def next_cursor(page: Mapping[str, Any]) -> str | None:
    """The cursor of the page after this one; an empty one is none."""
    cursor = page.get("nextCursor")
    return cursor if isinstance(cursor, str) and cursor else None


def tools_of(page: Mapping[str, Any]) -> list[Any]:
    """The tools of a page, unchecked."""
    tools = page.get("tools")
    return cast("list[Any]", tools) if isinstance(tools, list) else []

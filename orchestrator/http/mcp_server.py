"""The MCP server behind every endpoint, by the SDK's low-level server: both eras of the protocol.

It knows no tool and no rule: whoever calls was let in by `mcp_route`, and lists and calls for itself.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

import mcp_types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from orchestrator.http.bodies import MAX_BODY_BYTES
from orchestrator.http.failures import logged_bug
from orchestrator.http.mcp_changes import CallersChanges, Subscribe, serve_stream
from orchestrator.http.mcp_results import failure, result_of
from orchestrator.ports.ids import Ids
from orchestrator.services.mcp_callers import McpCaller
from tool_registry.errors import PortsideError
from tool_registry.mcp_listing import tool_of
from tool_registry.tool import PromisesOutput

CALLER = "portside.mcp_caller"
"""Where the scope of a request that was let in says who calls."""

MAX_SESSIONS = 1024
_NAME = "portside"

Context = ServerRequestContext[Any, Any]


class McpServer:
    """Answers requests that were let in.

    Args:
        ids: names what went wrong inside.
        subscribe: tells when the registry's tools changed.
        idle_s: how long a session without an open request lasts.
    """

    def __init__(self, ids: Ids, subscribe: Subscribe, *, idle_s: float) -> None:
        self._ids = ids
        self._subscribe = subscribe
        server: Server[Any] = Server(
            _NAME,
            version="1",
            on_list_tools=_none_yet,
            on_call_tool=self._call,
            on_subscriptions_listen=self._listen,
            get_tool_input_schema=_unknown,
        )
        server.middleware = [self._as_its_caller_sees_it]
        self._manager = StreamableHTTPSessionManager(
            server,
            session_idle_timeout=idle_s,
            max_request_body_size=MAX_BODY_BYTES,
            max_sessions=MAX_SESSIONS,
        )
        self._task: asyncio.Task[None] | None = None
        self._ending = asyncio.Event()

    async def start(self) -> None:
        """Take requests from now on."""
        started = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._run(started))
        await started.wait()

    async def close(self) -> None:
        """End every session and what it still asks."""
        self._ending.set()
        if self._task is not None:
            await self._task

    async def _run(self, started: asyncio.Event) -> None:
        """Hold the sessions' tasks: whoever begins a group of tasks has to end it too."""
        async with self._manager.run():
            started.set()
            await self._ending.wait()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; its scope has the caller."""
        if scope["method"] == "GET":
            changes = CallersChanges(scope[CALLER], self._subscribe)
            await serve_stream(self._manager.handle_request, changes, scope, receive, send)
        else:
            await self._manager.handle_request(scope, receive, send)

    async def _as_its_caller_sees_it(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Put tools and instructions into the SDK's answers when they are done.

        It changes the key order of schemas, and has one text of instructions for all.
        """
        caller = _caller(ctx)
        if ctx.method != "initialize":  # that has no session yet
            try:
                await caller.present(session_of(_scope(ctx), caller))
            except PortsideError as error:
                if ctx.request_id is None:  # nobody waits for an answer: the next request hears it
                    return await call_next(ctx)
                raise MCPError(mcp_types.INVALID_REQUEST, f"{error.code}: {error.message}") from None
        answer = await call_next(ctx)
        if not isinstance(answer, dict):
            return answer
        if ctx.method == "tools/list":
            return {**answer, "tools": [tool_of(entry, outputs=True) for entry in caller.entries()]}
        if ctx.method == "initialize":  # the SDK takes this from whoever runs a session, and nobody does
            answer = {**answer, "capabilities": {**answer["capabilities"], "tools": {"listChanged": True}}}
        if ctx.method in {"initialize", "server/discover"} and caller.instructions:
            return {**answer, "instructions": caller.instructions}
        return answer

    async def _listen(
        self, ctx: Context, params: mcp_types.SubscriptionsListenRequestParams
    ) -> mcp_types.SubscriptionsListenResult:
        return await ListenHandler(CallersChanges(_caller(ctx), self._subscribe))(ctx, params)

    async def _call(self, ctx: Context, params: mcp_types.CallToolRequestParams) -> mcp_types.CallToolResult:
        caller = _caller(ctx)
        promises = {one.name for one in caller.entries() if isinstance(one.tool, PromisesOutput)}
        try:
            answer = await caller.call(session_of(_scope(ctx), caller), params.name, params.arguments or {})
            result = result_of(answer, structured=params.name in promises)
        except PortsideError as error:
            result = failure({"code": error.code, "detail": error.message})
        except Exception:  # noqa: BLE001 - no layer above this one knows what a caller may be told
            result = failure(logged_bug(_scope(ctx), self._ids))
        return mcp_types.CallToolResult.model_validate(result, by_name=False)


def session_of(scope: Scope, caller: McpCaller) -> str:
    """The session that a request belongs to."""
    return Headers(scope=scope).get(MCP_SESSION_ID_HEADER) or caller.place


def _scope(ctx: Context) -> Scope:
    """The scope of the HTTP request that carried a message; each is carried by one."""
    return cast("Request", ctx.request).scope


def _caller(ctx: Context) -> McpCaller:
    return _scope(ctx)[CALLER]


def _unknown(_name: str) -> None:
    """Arguments are held to their schema where the tool runs; headers repeat none of them here."""


async def _none_yet(
    _ctx: Context, _params: mcp_types.PaginatedRequestParams | None
) -> mcp_types.ListToolsResult:
    return mcp_types.ListToolsResult(tools=[])

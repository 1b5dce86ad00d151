"""Calls to one server, over whatever session there is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import anyio
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED

from tool_registry.errors import CallError, Outcome, ToolFailed, ToolNotFound, ToolTimeout, ToolUnavailable
from tool_registry.mcp.connection import ServerConnection
from tool_registry.mcp.faults import Fault, HttpFault, fault_in
from tool_registry.mcp.reasons import sentence
from tool_registry.mcp.session import Progress, Session
from tool_registry.mcp.status import ServerState

WAIT_FOR_SERVER_S = 5.0
FRESH_LIST_S = 1.0
MARGIN_S = 0.1
_CLOSED = "Connection closed"


class ServerRefused(Exception):
    """The server answered a call with a JSON-RPC error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class ServerCalls:
    """Calls a connection's tools, from any task of its loop."""

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection

    async def call(
        self, tool: str, arguments: Mapping[str, Any], *, timeout_s: float, progress: Progress
    ) -> dict[str, Any]:
        """Call a tool by the server's own name; the answer as the server sent it.

        A refusal that proves that the call did not run (a lost session, a token that has changed, a refused
        connection) leads to one new session and one more attempt. Nothing else is sent twice.

        Raises:
            ServerRefused: the server answered with a JSON-RPC error.
            ToolTimeout: no answer in time; the server was told to stop. Progress does not extend the time.
            ToolFailed: the server went away, or broke the protocol.
            ToolUnavailable: the server is being reconnected.
            ToolNotFound: the server no longer offers the tool.
        """
        # Just before the executor's own limit, whose error could not say what is known here.
        with anyio.move_on_after(timeout_s - min(MARGIN_S, timeout_s / 10)):
            return await self._call(tool, arguments, progress)
        raise ToolTimeout(
            sentence(
                f"the MCP server {self._connection.name!r} did not answer {tool!r} within {timeout_s:g} s"
                " and was told to stop",
                self._connection.log.noise(),
            ),
            hint="it may have had effects; ask for less, or have `timeout_s` of the server raised",
        )

    async def _call(self, tool: str, arguments: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
        session = await self._ready(tool)
        try:
            return await self._answer(session, tool, arguments, progress)
        except MCPError as error:
            fault = fault_in(error.data)
            if fault is None or not fault.not_run:
                raise await self._failure(error, session, tool) from None
            self._connection.drop(session, fault)
        session = await self._ready_again(tool, fault)
        try:
            return await self._answer(session, tool, arguments, progress)
        except MCPError as error:
            raise await self._failure(error, session, tool) from None

    async def _answer(
        self, session: Session, tool: str, arguments: Mapping[str, Any], progress: Progress
    ) -> dict[str, Any]:
        answer = await session.call(tool, arguments, progress)
        self._connection.answered += 1
        with anyio.move_on_after(FRESH_LIST_S):
            # A call that changes the tools is seen to have done so by whoever lists them next.
            await self._connection.listed(session)
        return answer

    async def _ready(self, tool: str) -> Session:
        """The session, after waiting a moment for one that is being made."""
        connection = self._connection
        with anyio.move_on_after(WAIT_FOR_SERVER_S):
            while connection.live is None and connection.state not in {
                ServerState.FAILED,
                ServerState.CLOSED,
            }:
                await connection.moved()
        session = connection.live
        if session is None:
            wait_s = max(1.0, connection.retry_at - anyio.current_time())
            raise ToolUnavailable(
                f"the MCP server {connection.name!r} is not connected:"
                f" {connection.reason or 'it is being started'}",
                retry_after_s=None if connection.state is ServerState.CLOSED else math.ceil(wait_s),
            )
        if all(offered.name != tool for offered in connection.listing.tools):
            raise ToolNotFound(f"the MCP server {connection.name!r} no longer offers {tool!r}")
        return session

    async def _ready_again(self, tool: str, fault: HttpFault) -> Session:
        """A new session; one that is refused for the same token's sake is no matter of waiting."""
        try:
            return await self._ready(tool)
        except ToolUnavailable as error:
            if fault.kind is not Fault.UNAUTHORISED:
                raise
            raise ToolFailed(error.message, outcome=Outcome.NOT_RUN, cause=fault.kind) from None

    async def _failure(self, error: MCPError, session: Session, tool: str) -> Exception:
        fault = fault_in(error.data)
        if fault is not None:
            return self._fault_failure(fault, session, tool)
        log = self._connection.log
        if error.code == CONNECTION_CLOSED and _is_ours(error.message):
            if error.message == _CLOSED:
                session.notices.end()  # the reader says so too, but maybe after the next call came
            words = log.masked(await session.wire.last_words())
            return ToolFailed(
                sentence(f"the MCP server {self._connection.name!r} went away during {tool!r}", words),
                outcome=Outcome.UNKNOWN,
                hint="the call may have had effects; the server is being restarted",
                cause="server_gone",
            )
        return ServerRefused(error.code, log.masked(error.message))

    def _fault_failure(self, fault: HttpFault, session: Session, tool: str) -> CallError:
        text = (
            f"the MCP server {self._connection.name!r} could not be asked for {tool!r}:"
            f" {self._connection.log.masked(fault.detail)}"
        )
        if fault.kind is Fault.NOT_CONNECTED:
            self._connection.drop(session, fault)
            return ToolUnavailable(text, cause=fault.kind)
        if fault.kind is Fault.LOST_SESSION:
            self._connection.drop(session, fault)
        outcome = Outcome.NOT_RUN if fault.not_run else Outcome.UNKNOWN
        return ToolFailed(text, outcome=outcome, cause=fault.kind)


def _is_ours(message: str) -> bool:
    """The SDK's own words for a lost connection; a server may use the same code for anything."""
    return message == _CLOSED or message.startswith("SSE stream")

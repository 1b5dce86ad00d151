"""One server, kept connected: start, list, call, re-list, reconnect, end."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import anyio
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED

from tool_registry.errors import CallError, Outcome, ToolFailed, ToolNotFound, ToolTimeout, ToolUnavailable
from tool_registry.mcp.http import Fault, HttpFault, fault_in
from tool_registry.mcp.listing import Listing, read_listing
from tool_registry.mcp.log import ServerLog
from tool_registry.mcp.session import Notices, Progress, Session, open_session
from tool_registry.mcp.status import ServerState
from tool_registry.mcp.transport import ServerUnreachable, Transport, Wire

logger = logging.getLogger("tool_registry.mcp")

BACKOFF_S = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0)
STABLE_AFTER_S = 30.0
WAIT_FOR_SERVER_S = 5.0
FRESH_LIST_S = 1.0
COALESCE_S = 0.1
MARGIN_S = 0.1
NOTHING = Listing((), ())
_CLOSED = "Connection closed"

OnListing = Callable[[Listing, str], None]
"""Takes a server's tools and instructions, each time they change."""


class ServerRefused(Exception):
    """The server answered a call with a JSON-RPC error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class ServerConnection:
    """Keeps one server connected.

    `run` is its life and belongs into one task; everything else may be called from any task of the loop.

    Args:
        name: the server's name in the configuration.
        connect: makes a transport; asked anew for every attempt, so that changed secrets are seen.
        start_timeout_s: from starting or reaching the server to its tools.
        log: what the server wrote.
        on_listing: called when the tools change, and with nothing when they are withdrawn.
    """

    def __init__(
        self,
        name: str,
        connect: Callable[[], Awaitable[Transport]],
        *,
        start_timeout_s: float,
        log: ServerLog,
        on_listing: OnListing,
    ) -> None:
        self.name = name
        self.state = ServerState.CONNECTING
        self.reason = ""
        self.last_error = ""
        self.version = ""
        self.listing = NOTHING
        self._connect = connect
        self._start_timeout_s = start_timeout_s
        self._log = log
        self._on_listing = on_listing
        self._instructions = ""
        self._session: Session | None = None
        self._moved = anyio.Event()
        self._listed = anyio.Event()
        self._relisting = False
        self._closing = False
        self._once = False
        self._was_up = False
        self._scope: anyio.CancelScope | None = None
        self._dropped: HttpFault | None = None
        self._stage = ""
        self._failures = 0
        self._answered = 0
        self._retry_at = 0.0

    # --- life ---------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Stay connected until `close`. What a server does never ends it; the back-off bounds its rate."""
        while not self._closing:
            began = anyio.current_time()
            reason = await self._life()
            if self._closing:
                break
            if anyio.current_time() - began >= STABLE_AFTER_S:
                self._failures = 0
            delay_s = self._next_delay()
            self._retry_at = anyio.current_time() + delay_s
            self._lost(reason)
            with anyio.move_on_after(delay_s), anyio.CancelScope() as self._scope:
                await anyio.sleep_forever()
        self._session = None
        self._move(ServerState.CLOSED, "it was closed")

    async def try_once(self) -> None:
        """Connect, list and end; `state`, `reason` and `listing` say how it went."""
        self._once = True
        reason = await self._life()
        self._session = None
        self._move(ServerState.FAILED if reason else ServerState.READY, reason)

    def close(self) -> None:
        """End `run`, soon and in order."""
        self._closing = True
        if self._session is not None:
            self._session.notices.end()
        elif self._scope is not None:
            self._scope.cancel()

    async def _life(self) -> str:
        """From connecting to the end of the connection; answers why it ended, "" when it was closed."""
        wire: Wire | None = None
        self._dropped, self._answered, self._was_up, self._stage = None, 0, False, "start"
        notices = Notices(self._log.add)
        try:
            with anyio.CancelScope(deadline=anyio.current_time() + self._start_timeout_s) as self._scope:
                transport = await self._connect()
                async with transport.open() as wire:
                    self._stage = "initialize"
                    async with open_session(wire, notices) as session:
                        self._stage = "tools/list"
                        listing = await read_listing(session)
                        self._scope.deadline = math.inf
                        self._up(session, listing)
                        return await self._serve(session)
            return "" if self._closing else self._silence()
        except Exception as error:  # noqa: BLE001 - the boundary that keeps one server's faults to itself
            return await self._explain(error, wire)

    async def _serve(self, session: Session) -> str:
        """Keep the tool list fresh until the connection ends."""
        while not (self._closing or self._once):
            if self._dropped is not None:
                return self._dropped.detail
            if session.notices.ended:
                return _sentence("the connection ended", await session.wire.last_words())
            if session.notices.list_changed:
                await self._relist(session)
            else:
                await session.notices.wait()
        return ""

    async def _relist(self, session: Session) -> None:
        """Read the tools again; notices that come meanwhile or just after are answered by one more read."""
        session.notices.list_changed = False
        self._relisting = True
        try:
            with anyio.fail_after(self._start_timeout_s):
                self._publish(await read_listing(session))
        except (MCPError, TimeoutError) as error:
            self.last_error = f"its changed tool list could not be read: {str(error)[:300]}"
            logger.warning("MCP server %s: %s", self.name, self.last_error)
        finally:
            self._relisting = False
            self._listed.set()
            self._listed = anyio.Event()
        await anyio.sleep(COALESCE_S)

    def _up(self, session: Session, listing: Listing) -> None:
        self._session = session
        self._was_up = True
        self.version = session.version
        self._instructions = session.instructions
        self._move(ServerState.READY, "")
        self._publish(listing)

    def _lost(self, reason: str) -> None:
        """A server that was ready keeps its tools for one attempt; after that they are withdrawn."""
        if reason != self.last_error:
            logger.warning("MCP server %s: %s", self.name, reason)
        self.last_error = reason
        self._session = None
        if self._was_up:
            self._move(ServerState.RECONNECTING, reason)
        else:
            self._move(ServerState.FAILED, reason)
            self._publish(NOTHING)

    def _publish(self, listing: Listing) -> None:
        if listing != self.listing:
            self.listing = listing
            self._on_listing(listing, self._instructions)

    def _move(self, state: ServerState, reason: str) -> None:
        self.state, self.reason = state, reason
        self._moved.set()
        self._moved = anyio.Event()

    def _next_delay(self) -> float:
        """Nothing after a refusal that a new session heals, where the old one worked; else the next step."""
        if self._dropped is not None and self._dropped.new_session_heals and self._answered:
            return 0.0
        delay_s = BACKOFF_S[min(self._failures, len(BACKOFF_S) - 1)]
        self._failures += 1
        return delay_s

    def _silence(self) -> str:
        wanted = "it was not ready" if self._stage == "start" else f"it did not answer `{self._stage}`"
        fix = "check that it is an MCP server, or raise `start_timeout_s`"
        said = self._log.tail()
        return _sentence(
            f"{wanted} within {self._start_timeout_s:g} s: {fix}",
            self._log.noise(),
            f"its last stderr lines: {said}" if said else "",
        )

    async def _explain(self, failure: BaseException, wire: Wire | None) -> str:
        error = _first_leaf(failure)
        if isinstance(error, ServerUnreachable):
            return str(error)
        if isinstance(error, MCPError):
            fault = fault_in(error.data)
            if fault is not None:
                return fault.detail
            if error.code == CONNECTION_CLOSED:
                words = await wire.last_words() if wire is not None else ""
                return _sentence(f"it ended before it answered `{self._stage}`", words, self._log.noise())
            return self._log.masked(f"it refused `{self._stage}`: {error.message[:300]} (code {error.code})")
        logger.error("MCP server %s: unexpected error", self.name, exc_info=error)
        return f"unexpected {type(error).__name__}; the log has the details"

    # --- calls --------------------------------------------------------------------------------------------

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
            _sentence(
                f"the MCP server {self.name!r} did not answer {tool!r} within {timeout_s:g} s"
                " and was told to stop",
                self._log.noise(),
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
            self._drop(session, fault)
        session = await self._ready(tool)
        try:
            return await self._answer(session, tool, arguments, progress)
        except MCPError as error:
            raise await self._failure(error, session, tool) from None

    async def _answer(
        self, session: Session, tool: str, arguments: Mapping[str, Any], progress: Progress
    ) -> dict[str, Any]:
        answer = await session.call(tool, arguments, progress)
        self._answered += 1
        with anyio.move_on_after(FRESH_LIST_S):
            # A call that changes the tools is seen to have done so by whoever lists them next.
            while (session.notices.list_changed or self._relisting) and not session.notices.ended:
                await self._listed.wait()
        return answer

    async def _ready(self, tool: str) -> Session:
        """The session, after waiting a moment for one that is being made."""
        with anyio.move_on_after(WAIT_FOR_SERVER_S):
            while self._live() is None and self.state not in {ServerState.FAILED, ServerState.CLOSED}:
                await self._moved.wait()
        session = self._live()
        if session is None:
            wait_s = max(1.0, self._retry_at - anyio.current_time())
            raise ToolUnavailable(
                f"the MCP server {self.name!r} is not connected: {self.reason or 'it is being started'}",
                retry_after_s=None if self.state is ServerState.CLOSED else math.ceil(wait_s),
            )
        if all(offered.name != tool for offered in self.listing.tools):
            raise ToolNotFound(f"the MCP server {self.name!r} no longer offers {tool!r}")
        return session

    def _live(self) -> Session | None:
        return None if self._session is None or self._session.notices.ended else self._session

    def _drop(self, session: Session, fault: HttpFault) -> None:
        if self._session is session:
            self._session = None
            self._dropped = fault
            self._move(ServerState.RECONNECTING, fault.detail)
            session.notices.end()

    async def _failure(self, error: MCPError, session: Session, tool: str) -> Exception:
        fault = fault_in(error.data)
        if fault is not None:
            return self._fault_failure(fault, session, tool)
        if error.code == CONNECTION_CLOSED and _is_ours(error.message):
            if error.message == _CLOSED:
                session.notices.end()  # the reader says so too, but maybe after the next call came
            words = self._log.masked(await session.wire.last_words())
            return ToolFailed(
                _sentence(f"the MCP server {self.name!r} went away during {tool!r}", words),
                outcome=Outcome.UNKNOWN,
                hint="the call may have had effects; the server is being restarted",
                cause="server_gone",
            )
        return ServerRefused(error.code, self._log.masked(error.message))

    def _fault_failure(self, fault: HttpFault, session: Session, tool: str) -> CallError:
        text = f"the MCP server {self.name!r} could not be asked for {tool!r}: {fault.detail}"
        if fault.kind is Fault.NOT_CONNECTED:
            self._drop(session, fault)
            return ToolUnavailable(text, cause=fault.kind)
        if fault.kind is Fault.LOST_SESSION:
            self._drop(session, fault)
        outcome = Outcome.NOT_RUN if fault.not_run else Outcome.UNKNOWN
        return ToolFailed(text, outcome=outcome, cause=fault.kind)


def _first_leaf(error: BaseException) -> BaseException:
    """What started a group of failures: task groups wrap even a single one."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    return _first_leaf(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])


def _is_ours(message: str) -> bool:
    """The SDK's own words for a lost connection; a server may use the same code for anything."""
    return message == _CLOSED or message.startswith("SSE stream")


def _sentence(*parts: str) -> str:
    return "; ".join(part for part in parts if part)

"""One server, kept connected: start, list, re-list, reconnect, end. `calls.py` calls its tools."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable
from dataclasses import replace

import anyio
from mcp.shared.exceptions import MCPError

from tool_registry.mcp import reasons
from tool_registry.mcp.backoff import Backoff
from tool_registry.mcp.faults import HttpFault
from tool_registry.mcp.listing import Listing, read_listing
from tool_registry.mcp.log import ServerLog
from tool_registry.mcp.reasons import sentence
from tool_registry.mcp.session import Notices, Session, open_session
from tool_registry.mcp.status import Introduction, ServerState, Timing
from tool_registry.mcp.transport import Transport, Wire

logger = logging.getLogger("tool_registry.mcp")

COALESCE_S = 0.1
NOTHING = Listing((), ())

OnListing = Callable[[Listing, str], None]
"""Takes a server's tools and instructions: what the first attempt gave, then each time they change."""


class ServerConnection:
    """Keeps one server connected.

    `run` is its life and belongs into one task; everything else may be called from any task of the loop.

    Args:
        name: the server's name in the configuration.
        connect: makes a transport; asked anew for every attempt, so that changed secrets are seen.
        start_timeout_s: from starting or reaching the server to its tools.
        log: what the server wrote.
        on_listing: called when the tools change, and with nothing when they are withdrawn.

    Attributes:
        answered: how many calls the present session has answered.
        transport: the kind that is in use, or was tried last; "" before.
        retry_at: the loop's time of the next attempt, after one that failed.
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
        self.introduction = Introduction()
        self.timing = Timing()
        self.transport = ""
        self.listing = NOTHING
        self.log = log
        self.answered = 0
        self.retry_at = 0.0
        self._connect = connect
        self._start_timeout_s = start_timeout_s
        self._on_listing = on_listing
        self._told = False
        self.instructions = ""
        self._session: Session | None = None
        self._moved = anyio.Event()
        self._listed = anyio.Event()
        self._relisting = False
        self._closing = False
        self._once = False
        self._was_up = False
        self._scope: anyio.CancelScope | None = None
        self._dropped: HttpFault | None = None
        self._refused_start = False
        self._stage = reasons.START
        self._backoff = Backoff()

    # --- life ---------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Stay connected until `close`. What a server does never ends it; the back-off bounds its rate."""
        while not self._closing:
            began = anyio.current_time()
            reason = await self._life()
            if self._closing:
                break
            self._backoff.lasted(anyio.current_time() - began)
            delay_s = self._next_delay()
            self.retry_at = anyio.current_time() + delay_s
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
        if self._session is not None and not self._relisting:
            self._session.notices.end()
        elif self._scope is not None:
            self._scope.cancel()

    async def _life(self) -> str:
        """From connecting to the end of the connection; answers why it ended, "" when it was closed."""
        with anyio.CancelScope(deadline=anyio.current_time() + self._start_timeout_s) as self._scope:
            transport: Transport | None = None
            reason = ""
            try:
                transport = await self._connect()
            except Exception as error:  # noqa: BLE001 - as in _attempt
                reason = await reasons.broken(error, reasons.START, None, self.log)
            while transport is not None:
                ended = await self._attempt(transport)
                reason = ended if self._was_up else sentence(reason, ended)
                transport = transport.older if self._refused_start else None
            return reason
        return "" if self._closing else reasons.silence(self._stage, self._start_timeout_s, self.log)

    async def _attempt(self, transport: Transport) -> str:
        """The same over one transport; the scope's deadline ends the start, not what comes after."""
        assert self._scope is not None
        wire: Wire | None = None
        self._dropped, self.answered, self._was_up, self._stage = None, 0, False, reasons.START
        self._refused_start, self.transport = False, transport.kind
        notices = Notices(self.log.add)
        clock = _Laps()
        try:
            async with transport.open() as wire:
                self._stage, self.timing = "initialize", Timing(clock.lap_ms())
                async with open_session(wire, notices) as session:
                    self._stage = "tools/list"
                    self.timing = replace(self.timing, handshake_ms=clock.lap_ms())
                    listing = await read_listing(session)
                    self.timing = replace(self.timing, list_ms=clock.lap_ms())
                    self._scope.deadline = math.inf
                    self._up(session, listing)
                    return await self._serve(session)
        except Exception as error:  # noqa: BLE001 - the boundary that keeps one server's faults to itself
            self._refused_start = self._stage == "initialize" and reasons.knows_no_such_way(error)
            return await reasons.broken(error, self._stage, wire, self.log)

    async def _serve(self, session: Session) -> str:
        """Keep the tool list fresh until the connection ends."""
        while not (self._closing or self._once):
            if self._dropped is not None:
                return self._dropped.detail
            if session.notices.ended:
                return sentence("the connection ended", await session.wire.last_words())
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
        self.version, self.introduction = session.version, session.introduction
        self.instructions = session.instructions
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
        if listing != self.listing or not self._told:
            self.listing, self._told = listing, True
            self._on_listing(listing, self.instructions)

    def _move(self, state: ServerState, reason: str) -> None:
        self.state, self.reason = state, reason
        self._moved.set()
        self._moved = anyio.Event()

    def _next_delay(self) -> float:
        """Nothing after a refusal that a new session heals, where the old one worked; else the next step."""
        if self._dropped is not None and self._dropped.new_session_heals and self.answered:
            return 0.0
        return self._backoff.next_s()

    # --- what calls need ----------------------------------------------------------------------------------

    @property
    def live(self) -> Session | None:
        """The session, while there is one that can be used."""
        return None if self._session is None or self._session.notices.ended else self._session

    async def moved(self) -> None:
        """Until the state changes."""
        await self._moved.wait()

    async def settled(self) -> None:
        """Until the first attempt has ended, well or not."""
        while self.state is ServerState.CONNECTING:
            await self._moved.wait()

    async def listed(self, session: Session) -> None:
        """Until every change of the tools that the server has announced so far is in `listing`."""
        while (session.notices.list_changed or self._relisting) and not session.notices.ended:
            await self._listed.wait()

    def drop(self, session: Session, fault: HttpFault) -> None:
        """Give a session up for a new one."""
        if self._session is session:
            self._session = None
            self._dropped = fault
            self._move(ServerState.RECONNECTING, fault.detail)
            session.notices.end()


class _Laps:
    """Milliseconds since it was made, or since it was last asked."""

    def __init__(self) -> None:
        self._since = anyio.current_time()

    def lap_ms(self) -> float:
        before, self._since = self._since, anyio.current_time()
        return (self._since - before) * 1_000

"""How much of the MCP endpoints one caller may hold, so that none locks the others out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from orchestrator.errors import TooManyOpen
from tool_registry.clock import Clock

MAX_SESSIONS = 16
MAX_REQUESTS = 64


@dataclass(slots=True)
class _Session:
    principal: str
    heard_at: float
    requests: int = 0


class McpShares:
    """Counts what each caller has open.

    Args:
        clock: tells when a session is over that nobody ended.
        idle_s: after how long without a request it is.
    """

    def __init__(self, clock: Clock, *, idle_s: float) -> None:
        self._clock = clock
        self._idle_s = idle_s
        self._sessions: dict[str, _Session] = {}
        self._requests: Counter[str] = Counter()
        self._opening: Counter[str] = Counter()

    @contextmanager
    def request(self, principal: str, session: str | None, *, opens: bool) -> Generator[None]:
        """A request is under way.

        Args:
            principal: whose.
            session: which session it belongs to.
            opens: it asks for a new one.

        Raises:
            TooManyOpen: it would be one too many.
        """
        if self._requests[principal] >= MAX_REQUESTS:
            raise TooManyOpen(f"{MAX_REQUESTS} requests are under way; wait for one of them to end")
        if opens and self._count(principal) >= MAX_SESSIONS:
            raise TooManyOpen(f"{MAX_SESSIONS} sessions are open; end one with DELETE, or go on in one")
        known = self._sessions.get(session or "")
        self._requests[principal] += 1
        if opens:
            self._opening[principal] += 1
        if known is not None:
            known.requests += 1
        try:
            yield
        finally:
            self._requests -= Counter([principal])  # what comes to nothing is forgotten
            if opens:
                self._opening -= Counter([principal])
            if known is not None:
                known.requests -= 1
                known.heard_at = self._clock.monotonic()

    def opened(self, principal: str, session: str) -> None:
        """A session began."""
        self._sessions[session] = _Session(principal, self._clock.monotonic())

    def ended(self, session: str) -> None:
        """A session is over; an unknown one was before."""
        self._sessions.pop(session, None)

    def _count(self, principal: str) -> int:
        """The caller's sessions; those of anybody that ended by themselves are forgotten now."""
        oldest = self._clock.monotonic() - self._idle_s
        for key, one in list(self._sessions.items()):
            if not one.requests and one.heard_at < oldest:
                del self._sessions[key]
        mine = sum(one.principal == principal for one in self._sessions.values())
        return self._opening[principal] + mine

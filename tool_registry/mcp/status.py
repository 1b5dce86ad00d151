"""How a server is doing, for operators."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ServerState(StrEnum):
    """Where a server stands."""

    DISABLED = "disabled"
    CONNECTING = "connecting"
    READY = "ready"
    RECONNECTING = "reconnecting"
    FAILED = "failed"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """A server's state at one moment.

    Attributes:
        transport: `stdio` or `http`.
        state: `reconnecting` keeps its tools offered; `failed` has withdrawn them. Both are retried.
        reason: why it is not ready, and what to do; "" when it is.
        protocol_version: as negotiated; "" before.
        tool_count: how many tools are offered.
        last_error: the last thing that went wrong, also when all is well again.
        problems: what is left out of the tool list, and why.
    """

    name: str
    transport: str
    state: ServerState
    reason: str = ""
    protocol_version: str = ""
    tool_count: int = 0
    last_error: str = ""
    problems: tuple[str, ...] = ()

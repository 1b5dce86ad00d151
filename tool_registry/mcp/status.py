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
class Introduction:
    """Who a server says it is; empty before it said so.

    Attributes:
        capabilities: what it offers: `tools`, `resources`, `prompts`, ...
        announces_changes: it says that it will tell when its tools change.
    """

    name: str = ""
    version: str = ""
    capabilities: tuple[str, ...] = ()
    announces_changes: bool = False


@dataclass(frozen=True, slots=True)
class Timing:
    """How long the steps of the last start took, in milliseconds; 0 for what was not reached.

    Attributes:
        reach_ms: starting the process, or making ready for the URL.
        handshake_ms: until it introduced itself.
        list_ms: reading all pages of its tools.
    """

    reach_ms: float = 0.0
    handshake_ms: float = 0.0
    list_ms: float = 0.0


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
        introduction: who it says it is.
        instructions_chars: how long its own instructions are.
        timing: of its last start.
    """

    name: str
    transport: str
    state: ServerState
    reason: str = ""
    protocol_version: str = ""
    tool_count: int = 0
    last_error: str = ""
    problems: tuple[str, ...] = ()
    introduction: Introduction = Introduction()
    instructions_chars: int = 0
    timing: Timing = Timing()

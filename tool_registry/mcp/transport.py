"""The seam between a session and the way its bytes travel."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from mcp.client._transport import TransportStreams


async def _nothing() -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Wire:
    """One open connection to a server.

    Attributes:
        streams: the pair that the SDK's dispatcher reads and writes. The read side ends when the server
            is gone.
        last_words: what is known about why the server is gone: exit code, last stderr lines. Waits a
            moment, bounded, for both.
    """

    streams: TransportStreams
    last_words: Callable[[], Awaitable[str]] = _nothing


class Transport(Protocol):
    """How one server is reached. Implementations: stdio, streamable HTTP, SSE, and memory in tests."""

    @property
    def kind(self) -> str:
        """`stdio`, `http` or `sse`; shown in the status."""
        ...

    @property
    def older(self) -> Transport | None:
        """Another way to try where the server's HTTP does not know this one; None when there is none."""
        ...

    def open(self) -> AbstractAsyncContextManager[Wire]:
        """Start or reach the server. Leaving the context ends everything that entering began.

        Raises:
            ServerUnreachable: it can't be started or reached; says why and what to do.
        """
        ...


class ServerUnreachable(Exception):
    """A server can't be started or reached; the text names the reason and the fix."""

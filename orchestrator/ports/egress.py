"""The proxy that carries jobs' connections to the hosts that they were allowed."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from orchestrator.domain.egress.patterns import HostPattern

Way = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Denial = Literal["not_allowed", "private_address", "no_such_name", "not_reached"]


class ProxyFailed(Exception):
    """The proxy can't be used; the message says what to do."""


class ConnectionDenied(Exception):
    """A connection was not made."""

    def __init__(self, cause: Denial) -> None:
        super().__init__(cause)
        self.cause: Denial = cause


@dataclass(frozen=True, slots=True)
class Carried:
    """One connection that a job asked for, after its end.

    Attributes:
        cause: why it was not made; None when it was.
        address: whom it reached; empty when nobody was.
        sent_bytes: from the job; `received_bytes` to it.
    """

    job_id: str
    host: str
    port: int
    cause: Denial | None
    address: str
    sent_bytes: int
    received_bytes: int
    duration_ms: int


class EgressProxy(Protocol):
    """Decides by name, then by the address that the name has, and connects.

    Each connection is told of once, after its end, to whom the adapter was given for that.
    """

    def missing(self) -> str:
        """Why it can't be had on this machine, and the command that changes it; empty when it can."""
        ...

    async def end_leftovers(self) -> None:
        """End what a killed orchestrator left running; before anything is admitted."""
        ...

    async def admit(self, job_id: str, hosts: Sequence[HostPattern]) -> None:
        """Let a job reach these hosts; again is fine.

        Raises:
            ProxyFailed: it can't be started.
        """
        ...

    async def dismiss(self, job_ids: Collection[str]) -> None:
        """Let these jobs reach nothing any more; their open connections are for their owners to close."""
        ...

    async def connect(self, job_id: str, host: str, port: int) -> Way:
        """A connection of an admitted job.

        Raises:
            ConnectionDenied: it may not be made, or nobody answers.
            ProxyFailed: the proxy itself does not answer.
        """
        ...

"""Models asked in a provider's own dialect, the answer handed through as it comes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from orchestrator.domain.native.judge import Accepted


@dataclass(frozen=True, slots=True)
class NativeRequest:
    """One request that may pass.

    Attributes:
        model: the job's, as `prefix:name`.
        headers: those that are passed on, names in lower case.
        body: JSON.
    """

    job_id: str
    model: str
    accepted: Accepted
    query: str
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class NativeAnswer:
    """A provider's answer; `chunks` is its body, read once."""

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]

    @property
    def is_stream(self) -> bool:
        """Whether the body is server-sent events."""
        return self.headers.get("content-type", "").partition(";")[0].strip() == "text/event-stream"


class NativeModels(Protocol):
    """Whoever answers native requests. Never asks twice: that is for the agent to decide."""

    def open(self, request: NativeRequest) -> AbstractAsyncContextManager[NativeAnswer]:
        """Send a request; leaving the context closes it.

        Raises:
            ModelError: there is no answer. Reading the body raises it too.
        """
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...

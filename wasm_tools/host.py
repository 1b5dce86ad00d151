"""What a guest may ask of its host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

from tool_registry.context import ToolContext


class HostDenied(Exception):
    """The guest may not have this; where the interface has an error side, the guest reads the message."""


class OverLimit(Exception):
    """The call used up what it may use of its host, which ends it; the message says what the tool did."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request that a guest asks its host to send; `timeout_ms` is the guest's own wish."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: str | None
    timeout_ms: int | None


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """What came back, as the guest may see it."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: str


class Host(Protocol):
    """The capabilities behind the guest's imports.

    Methods run on the guest's thread and may block, for no longer than `remaining_s`. What they raise,
    other than `HostDenied`, ends the call; none of it reaches the guest.
    """

    def secret_exists(self, name: str, remaining_s: float) -> bool:
        """Whether the tool may use a secret of that name."""
        ...

    def workspace_read(self, path: str, remaining_s: float) -> str | None:
        """A text file of the job's starting workspace; None when absent or not granted."""
        ...

    def http_request(self, request: HttpRequest, remaining_s: float) -> HttpResponse:
        """Send a request.

        Raises:
            HostDenied: it is not allowed, or it failed.
            OverLimit: it is one too many for this call, or too large.
        """
        ...

    def tool_invoke(self, alias: str, params_json: str, remaining_s: float) -> str:
        """Call another tool.

        Raises:
            HostDenied: it is not allowed, or it failed.
        """
        ...


class CallHost(Host, Protocol):
    """The host of one call."""

    def close(self) -> None:
        """End whatever its methods still wait for; from any thread."""
        ...


class Hosts(Protocol):
    """Makes the host of each call of one tool."""

    def open(self, context: ToolContext) -> CallHost:
        """A host for one call, to be closed when the call is over."""
        ...


class RefusingHost:
    """Grants nothing; says so where the interface can. The same for every call."""

    def open(self, context: ToolContext) -> Self:
        """Itself: it keeps nothing."""
        return self

    def close(self) -> None:
        """Nothing waits."""

    def secret_exists(self, name: str, remaining_s: float) -> bool:
        """No secret is granted."""
        return False

    def workspace_read(self, path: str, remaining_s: float) -> str | None:
        """No file is granted."""
        return None

    def http_request(self, request: HttpRequest, remaining_s: float) -> HttpResponse:
        """Refuse."""
        raise HostDenied("not granted: this tool may not send HTTP requests")

    def tool_invoke(self, alias: str, params_json: str, remaining_s: float) -> str:
        """Refuse."""
        raise HostDenied("not granted: this tool may not call other tools")

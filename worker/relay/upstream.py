"""A native model request on its way to the orchestrator: with the job token, streamed back."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import httpx

from tool_registry.clock import Clock
from worker.client import LLM_TIMEOUT_S
from worker.problem import problem_of
from worker.protocol.paths import worker_path
from worker.relay.rules import Header
from worker.token import Token

_CONNECT_S = 5.0
_RETRY_S = 0.5


@dataclass(frozen=True, slots=True)
class NativeRequest:
    """One request as it goes on; `name` is the path below the job's own."""

    method: str
    name: str
    query: str = ""
    headers: Sequence[Header] = ()
    body: bytes = field(default=b"", repr=False)


class Upstream:
    """The line to the orchestrator.

    A request is sent once: whether a broken one is asked again is the agent's to decide, which sees the
    error. Only an orchestrator that does not listen is waited for, and a token that has just run out renewed.

    Args:
        connect: makes a client. Each request has one of its own, whose end closes the connection in every
            state: a pool would keep, for ever, one whose request is cancelled before its first byte.
        token: the job's, as it stands at each request.
        renew: takes a fresh one.
        outage_s: how long nobody may listen.

    Attributes:
        answered: how many requests the model has answered.
    """

    def __init__(
        self,
        connect: Callable[[], httpx.AsyncClient],
        job_id: str,
        token: Token,
        *,
        renew: Callable[[], Awaitable[object]],
        clock: Clock,
        outage_s: float = 600.0,
    ) -> None:
        self._connect = connect
        self._job_id = job_id
        self._token = token
        self._renew = renew
        self._clock = clock
        self._outage_s = outage_s
        self.answered = 0

    @asynccontextmanager
    async def open(self, request: NativeRequest) -> AsyncGenerator[httpx.Response]:
        """The answer, its body unread; leaving the context closes the request.

        Raises:
            httpx.TransportError: there is no answer.
            PortsideError: the token ran out and can't be renewed.
        """
        async with self._connect() as http:
            response = await self._send(http, request)
            if response.status_code == 401 and await _expired(response):
                await self._renew()
                response = await self._send(http, request)
            if response.is_success and request.method == "POST":
                self.answered += 1
            yield response

    async def _send(self, http: httpx.AsyncClient, request: NativeRequest) -> httpx.Response:
        began = self._clock.monotonic()
        path = worker_path(self._job_id, request.name)
        while True:
            built = http.build_request(
                request.method,
                f"{path}?{request.query}" if request.query else path,
                content=request.body or None,
                headers=[*request.headers, ("Authorization", f"Bearer {self._token.text}")],
                timeout=httpx.Timeout(LLM_TIMEOUT_S, connect=_CONNECT_S),
            )
            try:
                return await http.send(built, stream=True)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                if self._clock.monotonic() - began >= self._outage_s:
                    raise
                await anyio.sleep(_RETRY_S)


async def _expired(response: httpx.Response) -> bool:
    await response.aread()
    return problem_of(response).code == "token_expired"

"""The line to the orchestrator: a request goes out until it is answered, or may not go out again.

Every request may be made again: reads by nature, the others because the orchestrator knows them by an
idempotency key, a sequence number or their equal content. So one rule holds for all: a socket nobody
answers on is tried until the outage bound, a broken connection or an inviting error a few times.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import TypeVar

import anyio
import httpx
from pydantic import BaseModel, ValidationError

from tool_registry.clock import Clock
from tool_registry.errors import Outcome, RemoteProblem
from worker.errors import AuthenticationExpired, NoAnswerInTime, OrchestratorUnreachable
from worker.problem import problem_of
from worker.protocol import paths
from worker.protocol.job import TokenAnswer
from worker.retry import RetryPolicy
from worker.token import Token

_TIMEOUT_S = 30.0
_CONNECT_S = 5.0
_CHUNK_BYTES = 256 * 1024
_Model = TypeVar("_Model", bound=BaseModel)

Body = Callable[[], AsyncIterator[bytes]]


@dataclass(frozen=True, slots=True)
class Call:
    """One request, in a form that can be sent again."""

    method: str
    name: str
    content: bytes | Body | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    query: Sequence[tuple[str, str]] = ()
    timeout_s: float = _TIMEOUT_S
    save_to: Path | None = None


class _Failures:
    """What has gone wrong with one call so far."""

    def __init__(self) -> None:
        self.refused = 0
        self.broken = 0
        self.unsent = 0
        self.outage_since: float | None = None
        self.renewed = False


class Line:
    """Sends one job's requests, with its token, which is renewed when it has run out.

    Attributes:
        policy: how long and how often a request is tried.
        notice: is told, once each, that an outage began or ended.
    """

    def __init__(
        self,
        http: httpx.AsyncClient,
        job_id: str,
        token: Token,
        *,
        clock: Clock,
        policy: RetryPolicy | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._http = http
        self._job_id = job_id
        self._token = token
        self._clock = clock
        self.policy = policy or RetryPolicy()
        self.notice: Callable[[str], None] = _unheard
        self._sleep = sleep
        self._jitter = jitter
        self._renewal = anyio.Lock()

    async def send(self, call: Call) -> httpx.Response:
        """The answer to a request: its body read, or saved where the request says so.

        Raises:
            RemoteProblem: the orchestrator refused it.
            OrchestratorUnreachable: the orchestrator stayed away.
            NoAnswerInTime: it did not answer.
            AuthenticationExpired: the token ran out and could not be renewed.
        """
        failures = _Failures()
        while True:
            token = self._token.text
            try:
                response = await self._once(call, token)
            except httpx.TransportError as error:
                await self._wait_out(call, error, failures)
                continue
            if failures.outage_since is not None:
                failures.outage_since = None
                self.notice("the orchestrator answers again")
            if response.is_success or response.status_code == HTTPStatus.NOT_MODIFIED:
                return response
            await self._after_refusal(call, response, token, failures)

    async def renew(self) -> TokenAnswer:
        """Take a fresh token and use it from here on."""
        async with self._renewal:
            return await self._renew()

    async def _renew(self) -> TokenAnswer:
        try:
            response = await self.send(Call("POST", paths.TOKEN_RENEW))
        except RemoteProblem as problem:
            if problem.code == "token_expired":
                message = f"authentication expired and can't be renewed: {problem.message}"
                raise AuthenticationExpired(message) from problem
            raise
        answer = read(TokenAnswer, response)
        self._token.text = answer.token
        return answer

    async def _once(self, call: Call, token: str) -> httpx.Response:
        request = self._http.build_request(
            call.method,
            paths.worker_path(self._job_id, call.name),
            content=call.content() if callable(call.content) else call.content,
            headers={**call.headers, "Authorization": f"Bearer {token}"},
            params=list(call.query) or None,
            timeout=httpx.Timeout(call.timeout_s, connect=_CONNECT_S),
        )
        response = await self._http.send(request, stream=True)
        try:
            if call.save_to is not None and response.status_code == HTTPStatus.OK:
                await _save(response, call.save_to)
            else:
                await response.aread()
        finally:
            await response.aclose()
        return response

    async def _wait_out(self, call: Call, error: httpx.TransportError, failures: _Failures) -> None:
        """Wait before the next try, or give up with the right error."""
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            now = self._clock.monotonic()
            if failures.outage_since is None:
                failures.outage_since = now
                self.notice("the orchestrator does not answer; waiting for it")
            elif now - failures.outage_since >= self.policy.outage_s:
                raise OrchestratorUnreachable(
                    f"nobody answered on the orchestrator's socket for {self.policy.outage_s:g} s"
                ) from error
            failures.unsent += 1
        elif isinstance(error, httpx.ReadTimeout):
            raise NoAnswerInTime(f"no answer to {call.name} within {call.timeout_s:g} s") from error
        elif failures.broken >= self.policy.retries:
            message = f"the connection broke {failures.broken + 1} times during {call.name}"
            raise OrchestratorUnreachable(message) from error
        else:
            failures.broken += 1
        await self._sleep(self.policy.delay_s(failures.unsent + failures.broken, self._jitter()))

    async def _after_refusal(
        self, call: Call, response: httpx.Response, token: str, failures: _Failures
    ) -> None:
        """Make the next try possible, or raise the problem."""
        problem = problem_of(response)
        if problem.code == "token_expired" and not failures.renewed and call.name != paths.TOKEN_RENEW:
            failures.renewed = True
            async with self._renewal:
                if self._token.text == token:
                    await self._renew()
            return
        if failures.refused >= self.policy.retries or not self.policy.may_retry(
            response.status_code, problem
        ):
            raise problem
        failures.refused += 1
        await self._sleep(self.policy.delay_s(failures.refused, self._jitter(), problem.retry_after_s))


def read(model: type[_Model], response: httpx.Response) -> _Model:
    """The message that an answer holds.

    Raises:
        RemoteProblem: it holds none.
    """
    try:
        return model.model_validate_json(response.content)
    except ValidationError as error:
        where = ", ".join(".".join(map(str, one["loc"])) or "the whole" for one in error.errors()[:5])
        message = f"the orchestrator's answer to {response.url.path} can't be read: wrong or missing: {where}"
        raise RemoteProblem(message, code="internal", retryable=False, outcome=Outcome.UNKNOWN) from error


def _unheard(_text: str) -> None:
    """Nobody listens."""


async def _save(response: httpx.Response, path: Path) -> None:
    async with await anyio.open_file(path, "wb") as target:
        async for chunk in response.aiter_bytes(_CHUNK_BYTES):
            await target.write(chunk)

"""The worker's side of the worker API: every route, over the job's unix socket.

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
from pydantic import BaseModel, RootModel, ValidationError

from tool_registry.clock import Clock
from tool_registry.errors import Outcome, RemoteProblem
from worker.errors import AuthenticationExpired, NoAnswerInTime, OrchestratorUnreachable
from worker.problem import problem_of
from worker.protocol import paths
from worker.protocol.events import EventBatch
from worker.protocol.job import (
    CompletionReport,
    Credential,
    Deliveries,
    Delivery,
    JobDescription,
    StatusReport,
    TokenAnswer,
)
from worker.protocol.llm import (
    CompleteAnswer,
    CompleteRequest,
    CompleteWithToolsAnswer,
    CompleteWithToolsRequest,
)
from worker.protocol.tools import Catalog, ExecuteAnswer, ExecuteRequest
from worker.retry import RetryPolicy
from worker.token import Token

LLM_TIMEOUT_S = 610.0
EXECUTE_MARGIN_S = 10.0
_TIMEOUT_S = 30.0
_CONNECT_S = 5.0
_CHUNK_BYTES = 256 * 1024
_Model = TypeVar("_Model", bound=BaseModel)

_Body = Callable[[], AsyncIterator[bytes]]


@dataclass(frozen=True, slots=True)
class _Call:
    """One request, in a form that can be sent again."""

    method: str
    name: str
    content: bytes | _Body | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    query: Sequence[tuple[str, str]] = ()
    timeout_s: float = _TIMEOUT_S
    save_to: Path | None = None


class Credentials(RootModel[list[Credential]]):
    """What `GET credentials` answers."""


class _Failures:
    """What has gone wrong with one call so far."""

    def __init__(self) -> None:
        self.refused = 0
        self.broken = 0
        self.outage_since: float | None = None
        self.renewed = False


class WorkerClient:
    """Speaks to the orchestrator for one job.

    Every method raises `RemoteProblem` for what the orchestrator refused, `OrchestratorUnreachable` when
    it stayed away, `NoAnswerInTime` when it did not answer, and `AuthenticationExpired` when the token
    ran out and could not be renewed.
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
        notice: Callable[[str], None] | None = None,
    ) -> None:
        """`notice` is told, once each, that an outage began or ended."""
        self._http = http
        self._job_id = job_id
        self._token = token
        self._clock = clock
        self.policy = policy or RetryPolicy()
        self._sleep = sleep
        self._jitter = jitter
        self.notice: Callable[[str], None] = notice or _unheard
        self._renewal = anyio.Lock()

    async def job(self) -> JobDescription:
        """The job. The orchestrator counts the worker as registered from here on."""
        response = await self._send(_Call("GET", paths.JOB))
        return _read(JobDescription, response)

    async def workspace(self, save_to: Path) -> bool:
        """Save the starting workspace, a tar, to a file; False when it is empty."""
        response = await self._send(_Call("GET", paths.WORKSPACE, save_to=save_to, timeout_s=120.0))
        return response.status_code != HTTPStatus.NO_CONTENT

    async def upload_changes(self, patch: Path, digest: str) -> None:
        """Store the patch file as the job's result; `digest` is a `Content-Digest` value."""
        headers = {paths.CONTENT_DIGEST: digest, "Content-Type": "application/octet-stream"}
        call = _Call("PUT", paths.WORKSPACE_CHANGES, lambda: _chunks(patch), headers, timeout_s=120.0)
        await self._send(call)

    async def credentials(self) -> Sequence[Credential]:
        """The secrets granted to the job's child processes."""
        response = await self._send(_Call("GET", paths.CREDENTIALS))
        if response.status_code == HTTPStatus.NO_CONTENT:
            return ()
        return _read(Credentials, response).root

    async def status(self, report: StatusReport) -> None:
        """Say where the worker stands."""
        await self._post(paths.STATUS, report)

    async def events(self, batch: EventBatch) -> None:
        """Store events."""
        await self._post(paths.EVENTS, batch)

    async def deliveries(self, ack: Sequence[str], wait_s: float) -> Sequence[Delivery]:
        """Acknowledge deliveries, then wait for what has not been acknowledged."""
        query = [("wait_s", f"{wait_s:g}"), *(("ack", one) for one in ack)]
        response = await self._send(_Call("GET", paths.PROMPT, query=query, timeout_s=wait_s + 10.0))
        if response.status_code == HTTPStatus.NO_CONTENT:
            return ()
        return _read(Deliveries, response).deliveries

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        """Ask the model for text."""
        response = await self._post(paths.LLM_COMPLETE, request, timeout_s=LLM_TIMEOUT_S)
        return _read(CompleteAnswer, response)

    async def complete_with_tools(self, request: CompleteWithToolsRequest) -> CompleteWithToolsAnswer:
        """Ask the model for its next step."""
        response = await self._post(paths.LLM_COMPLETE_WITH_TOOLS, request, timeout_s=LLM_TIMEOUT_S)
        return _read(CompleteWithToolsAnswer, response)

    async def catalog(self, known_version: str | None) -> Catalog | None:
        """The hosted-visible tools; None when they are still those of `known_version`."""
        headers = {"If-None-Match": f'"{known_version}"'} if known_version else {}
        response = await self._send(_Call("GET", paths.TOOLS_CATALOG, headers=headers))
        if response.status_code == HTTPStatus.NOT_MODIFIED:
            return None
        return _read(Catalog, response)

    async def execute(self, request: ExecuteRequest, *, key: str, timeout_s: float) -> ExecuteAnswer:
        """Run one remote tool call, once, however often the request has to be sent."""
        headers = {paths.IDEMPOTENCY_KEY: key}
        wait_s = timeout_s + EXECUTE_MARGIN_S
        response = await self._post(paths.TOOLS_EXECUTE, request, headers=headers, timeout_s=wait_s)
        return _read(ExecuteAnswer, response)

    async def artifact(self, artifact_id: str, offset: int, limit: int) -> bytes:
        """A part of an artifact of this job."""
        name = paths.ARTIFACT.format(artifact_id=artifact_id)
        response = await self._send(
            _Call("GET", name, query=[("offset", str(offset)), ("limit", str(limit))], timeout_s=120.0)
        )
        return response.content

    async def report(self, report: CompletionReport) -> None:
        """Report how the job ended; the same report again is fine."""
        await self._post(paths.COMPLETE, report)

    async def renew_token(self) -> TokenAnswer:
        """Take a fresh token and use it from here on."""
        async with self._renewal:
            return await self._renew()

    async def _renew(self) -> TokenAnswer:
        try:
            response = await self._send(_Call("POST", paths.TOKEN_RENEW))
        except RemoteProblem as problem:
            if problem.code == "token_expired":
                message = f"authentication expired and can't be renewed: {problem.message}"
                raise AuthenticationExpired(message) from problem
            raise
        answer = _read(TokenAnswer, response)
        self._token.text = answer.token
        return answer

    async def _post(
        self,
        name: str,
        body: BaseModel,
        *,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = _TIMEOUT_S,
    ) -> httpx.Response:
        content = body.model_dump_json().encode()
        typed = {"Content-Type": "application/json", **(headers or {})}
        return await self._send(_Call("POST", name, content, typed, timeout_s=timeout_s))

    async def _send(self, call: _Call) -> httpx.Response:
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

    async def _once(self, call: _Call, token: str) -> httpx.Response:
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

    async def _wait_out(self, call: _Call, error: httpx.TransportError, failures: _Failures) -> None:
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
        elif isinstance(error, httpx.ReadTimeout):
            raise NoAnswerInTime(f"no answer to {call.name} within {call.timeout_s:g} s") from error
        elif failures.broken >= self.policy.retries:
            message = f"the connection broke {failures.broken + 1} times during {call.name}"
            raise OrchestratorUnreachable(message) from error
        failures.broken += 1
        await self._sleep(self.policy.delay_s(failures.broken, self._jitter()))

    async def _after_refusal(
        self, call: _Call, response: httpx.Response, token: str, failures: _Failures
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


def _read(model: type[_Model], response: httpx.Response) -> _Model:
    try:
        return model.model_validate_json(response.content)
    except ValidationError as error:
        where = ", ".join(".".join(map(str, one["loc"])) or "the whole" for one in error.errors()[:5])
        message = f"the orchestrator's answer to {response.url.path} can't be read: wrong or missing: {where}"
        raise RemoteProblem(message, code="internal", retryable=False, outcome=Outcome.UNKNOWN) from error


def _unheard(_text: str) -> None:
    """Nobody listens."""


async def _chunks(path: Path) -> AsyncIterator[bytes]:
    async with await anyio.open_file(path, "rb") as source:
        while chunk := await source.read(_CHUNK_BYTES):
            yield chunk


async def _save(response: httpx.Response, path: Path) -> None:
    async with await anyio.open_file(path, "wb") as target:
        async for chunk in response.aiter_bytes(_CHUNK_BYTES):
            await target.write(chunk)

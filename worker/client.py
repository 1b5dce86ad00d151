"""The worker's side of the worker API: every route, over the job's unix socket."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path

import anyio
import httpx
from pydantic import BaseModel, RootModel

from tool_registry.clock import Clock
from worker.line import Call, Line, read
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
_CHUNK_BYTES = 256 * 1024


class Credentials(RootModel[list[Credential]]):
    """What `GET credentials` answers."""


class WorkerClient:
    """Speaks to the orchestrator for one job.

    Every method raises `RemoteProblem` for what the orchestrator refused, `OrchestratorUnreachable` when
    it stayed away, `NoAnswerInTime` when it did not answer, and `AuthenticationExpired` when the token
    ran out and could not be renewed.

    Attributes:
        line: what carries the requests.
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
        self.line = Line(http, job_id, token, clock=clock, policy=policy, sleep=sleep, jitter=jitter)

    async def job(self) -> JobDescription:
        """The job. The orchestrator counts the worker as registered from here on."""
        response = await self.line.send(Call("GET", paths.JOB))
        return read(JobDescription, response)

    async def workspace(self, save_to: Path) -> bool:
        """Save the starting workspace, a tar, to a file; False when it is empty."""
        response = await self.line.send(Call("GET", paths.WORKSPACE, save_to=save_to, timeout_s=120.0))
        return response.status_code != HTTPStatus.NO_CONTENT

    async def upload_changes(self, patch: Path, digest: str) -> None:
        """Store the patch file as the job's result; `digest` is a `Content-Digest` value."""
        headers = {paths.CONTENT_DIGEST: digest, "Content-Type": "application/octet-stream"}
        call = Call("PUT", paths.WORKSPACE_CHANGES, lambda: _chunks(patch), headers, timeout_s=120.0)
        await self.line.send(call)

    async def credentials(self) -> Sequence[Credential]:
        """The secrets granted to the job's child processes."""
        response = await self.line.send(Call("GET", paths.CREDENTIALS))
        if response.status_code == HTTPStatus.NO_CONTENT:
            return ()
        return read(Credentials, response).root

    async def status(self, report: StatusReport) -> None:
        """Say where the worker stands."""
        await self._post(paths.STATUS, report)

    async def events(self, batch: EventBatch) -> None:
        """Store events."""
        await self._post(paths.EVENTS, batch)

    async def deliveries(self, ack: Sequence[str], wait_s: float) -> Sequence[Delivery]:
        """Acknowledge deliveries, then wait for what has not been acknowledged."""
        query = [("wait_s", f"{wait_s:g}"), *(("ack", one) for one in ack)]
        response = await self.line.send(Call("GET", paths.PROMPT, query=query, timeout_s=wait_s + 10.0))
        if response.status_code == HTTPStatus.NO_CONTENT:
            return ()
        return read(Deliveries, response).deliveries

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        """Ask the model for text."""
        response = await self._post(paths.LLM_COMPLETE, request, timeout_s=LLM_TIMEOUT_S)
        return read(CompleteAnswer, response)

    async def complete_with_tools(self, request: CompleteWithToolsRequest) -> CompleteWithToolsAnswer:
        """Ask the model for its next step."""
        response = await self._post(paths.LLM_COMPLETE_WITH_TOOLS, request, timeout_s=LLM_TIMEOUT_S)
        return read(CompleteWithToolsAnswer, response)

    async def catalog(self, known_version: str | None) -> Catalog | None:
        """The hosted-visible tools; None when they are still those of `known_version`."""
        headers = {"If-None-Match": f'"{known_version}"'} if known_version else {}
        response = await self.line.send(Call("GET", paths.TOOLS_CATALOG, headers=headers))
        if response.status_code == HTTPStatus.NOT_MODIFIED:
            return None
        return read(Catalog, response)

    async def execute(self, request: ExecuteRequest, *, key: str, timeout_s: float) -> ExecuteAnswer:
        """Run one remote tool call, once, however often the request has to be sent."""
        headers = {paths.IDEMPOTENCY_KEY: key}
        wait_s = timeout_s + EXECUTE_MARGIN_S
        response = await self._post(paths.TOOLS_EXECUTE, request, headers=headers, timeout_s=wait_s)
        return read(ExecuteAnswer, response)

    async def artifact(self, artifact_id: str, offset: int, limit: int) -> bytes:
        """A part of an artifact of this job."""
        name = paths.ARTIFACT.format(artifact_id=artifact_id)
        response = await self.line.send(
            Call("GET", name, query=[("offset", str(offset)), ("limit", str(limit))], timeout_s=120.0)
        )
        return response.content

    async def report(self, report: CompletionReport) -> None:
        """Report how the job ended; the same report again is fine."""
        await self._post(paths.COMPLETE, report)

    async def renew_token(self) -> TokenAnswer:
        """Take a fresh token and use it from here on."""
        return await self.line.renew()

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
        return await self.line.send(Call("POST", name, content, typed, timeout_s=timeout_s))


async def _chunks(path: Path) -> AsyncIterator[bytes]:
    async with await anyio.open_file(path, "rb") as source:
        while chunk := await source.read(_CHUNK_BYTES):
            yield chunk

"""The native side of the model proxy: a job's agent speaks to its model as the provider's own SDK does."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

import anyio

from orchestrator.domain.jobs import Job
from orchestrator.domain.native.judge import Accepted, Refused, judge
from orchestrator.domain.native.names import Dialect, Endpoint
from orchestrator.domain.native.usage import Tokens, tokens_in
from orchestrator.errors import BadRequest, ModelFailed
from orchestrator.ports.membership import Membership
from orchestrator.ports.models import ModelError
from orchestrator.ports.native_models import NativeAnswer, NativeModels, NativeRequest
from orchestrator.services.budgets import Budgets, Charge
from orchestrator.services.native_stream import EventMeter, failed_event
from orchestrator.services.timeline import Timeline
from tool_registry.arguments import strict_json
from tool_registry.clock import Clock
from tool_registry.redaction import Redactor

_BYTES_PER_TOKEN = 4
_MAX_ERROR_BYTES = 64 * 1024
_MAX_ANSWER_BYTES = 64 * 1024 * 1024
_ACCOUNT = re.compile(r"\b(?:org|proj|user|wrkspc)[-_](?=[A-Za-z]*[0-9])[A-Za-z0-9]{8,}")
_LARGE_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class NativeAsk:
    """A request as a job's agent made it.

    Attributes:
        path: below `v1/`.
        headers: those that may go on, names in lower case.
    """

    dialect: Dialect
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = field(default=b"", repr=False)


@dataclass(slots=True)
class _Exchange:
    """One request under way: what it came to is charged and told once, before its answer ends."""

    job: Job
    accepted: Accepted
    sent_bytes: int
    timeline: Timeline
    clock: Clock
    started: float
    charge: Charge | None = None
    status: int = 0
    tokens: Tokens = field(default_factory=Tokens)
    whole: bool = False
    settled: bool = False

    async def settle(self) -> None:
        """Charge and tell; also when the client has left."""
        if self.settled:
            return
        self.settled = True
        took_ms = round((self.clock.monotonic() - self.started) * 1000)
        with anyio.CancelScope(shield=True):
            if self.charge is not None and 200 <= self.status < 300:
                if not self.tokens.input:  # uncounted: by its size
                    self.tokens = replace(self.tokens, input=self.sent_bytes // _BYTES_PER_TOKEN)
                await self.charge.answered(self.tokens.total)
            await self.timeline.note(
                self.job.id,
                "model",
                dialect=self.accepted.dialect,
                endpoint=self.accepted.endpoint,
                status=self.status,
                stream=self.accepted.stream,
                whole=self.whole,
                input_tokens=self.tokens.input,
                output_tokens=self.tokens.output,
                duration_ms=took_ms,
            )

    async def metered(self, chunks: AsyncIterator[bytes], meter: EventMeter) -> AsyncGenerator[bytes]:
        """A stream as it comes, settled before it ends."""
        try:
            async for chunk in chunks:
                if passed := meter.feed(chunk):
                    yield passed
            if rest := meter.rest():
                yield rest
            self.whole = True
        except ModelError as error:
            yield failed_event(error.message)
        finally:
            counted = meter.tokens
            # An answer that was left in the middle has no usage yet: an event is about a token.
            self.tokens = counted if counted.output else replace(counted, output=meter.events)
            await self.settle()


class NativeModelService:
    """Passes native requests to a job's model, within the job's rules and budget."""

    def __init__(
        self,
        models: NativeModels,
        *,
        membership: Membership,
        budgets: Budgets,
        timeline: Timeline,
        redactor: Redactor,
        clock: Clock,
    ) -> None:
        self._models = models
        self._membership = membership
        self._budgets = budgets
        self._timeline = timeline
        self._redactor = redactor
        self._clock = clock

    @asynccontextmanager
    async def open(self, job: Job, ask: NativeAsk) -> AsyncGenerator[NativeAnswer]:
        """The model's answer, as its provider gave it; leaving the context ends the request.

        A provider's own refusal is an answer, with its status, without secrets and bounded. Nothing is asked
        twice. A stream that breaks off ends with an error event.

        Raises:
            BadRequest: the request can't be read, or holds what may not leave the job.
            BudgetExhausted: the job has used up its tokens or iterations; nobody was asked.
            ModelFailed: there is no answer.
        """
        body = await _read(ask.body)
        accepted = judge(job.spec.model, ask.dialect, ask.path, body)
        if isinstance(accepted, Refused):
            raise BadRequest(accepted.message)
        await self._membership.heartbeat(job.instance_id)
        sent, hide_usage = _prepared(ask.body, body, accepted)
        request = NativeRequest(job.id, job.spec.model, accepted, ask.query, ask.headers, sent)
        exchange = self._exchange(job, request)
        async with AsyncExitStack() as stack:
            if accepted.endpoint is not Endpoint.COUNT_TOKENS:
                estimate = len(sent) // _BYTES_PER_TOKEN
                charging = self._budgets.request(job, estimate_tokens=estimate)
                exchange.charge = await stack.enter_async_context(charging)
            stack.push_async_callback(exchange.settle)
            try:
                answer = await stack.enter_async_context(self._models.open(request))
                exchange.status = answer.status
                answer = await self._cleaned(answer, exchange)
            except ModelError as error:
                raise _failed(error) from error
            if answer.is_stream and answer.status < 300:
                meter = EventMeter(self._clean, hide_usage=hide_usage)
                chunks = exchange.metered(answer.chunks, meter)
                stack.push_async_callback(chunks.aclose)
                answer = replace(answer, chunks=chunks)
            else:
                await exchange.settle()
            yield answer

    def _exchange(self, job: Job, request: NativeRequest) -> _Exchange:
        started = self._clock.monotonic()
        return _Exchange(job, request.accepted, len(request.body), self._timeline, self._clock, started)

    async def _cleaned(self, answer: NativeAnswer, exchange: _Exchange) -> NativeAnswer:
        """A stream as it is; anything else read whole, and an error freed of what is not the job's."""
        if answer.status < 300 and answer.is_stream:
            return answer
        if answer.status < 300:
            whole = await _whole(answer, _MAX_ANSWER_BYTES)
            exchange.tokens, exchange.whole = _tokens_of(whole), True
            return replace(answer, chunks=_one(whole))
        body = await _whole(answer, _MAX_ERROR_BYTES, cut=True)
        if answer.status in {401, 403} or answer.status < 400:
            raise ModelError(
                "the model provider refused the orchestrator's request; its operator has to look at the key",
                cause="credentials",
                fatal=True,
            )
        if not _is_json(body):
            status = 429 if answer.status == 429 else 502
            raise ModelError(
                f"the model provider failed with status {answer.status}", status=status, retryable=True
            )
        return replace(answer, chunks=_one(self._clean(body.decode()).encode()))

    def _clean(self, text: str) -> str:
        return _ACCOUNT.sub("[redacted:account]", self._redactor.text(text))


async def _read(body: bytes) -> Mapping[str, Any]:
    """The request's JSON; a large one is read beside the event loop."""
    try:
        if len(body) > _LARGE_BYTES:
            value = await anyio.to_thread.run_sync(lambda: strict_json(body.decode()))
        else:
            value = strict_json(body.decode())
    except ValueError as error:
        raise BadRequest(f"the body is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise BadRequest("the body must be a JSON object")
    return cast("Mapping[str, Any]", value)


def _prepared(raw: bytes, body: Mapping[str, Any], accepted: Accepted) -> tuple[bytes, bool]:
    """The body to send, and whether its stream holds a usage that nobody asked for.

    The bytes stay as they came unless the model was named otherwise, or the usage has to be asked for.
    """
    changes: dict[str, Any] = {"model": accepted.model} if accepted.renamed else {}
    options: Any = body.get("stream_options") or {}
    uncounted = (
        accepted.endpoint is Endpoint.CHAT
        and accepted.stream
        and isinstance(options, dict)
        and cast("Mapping[str, Any]", options).get("include_usage") is not True
    )
    if uncounted:
        changes["stream_options"] = {**options, "include_usage": True}
    if not changes:
        return raw, False
    return json.dumps({**body, **changes}, ensure_ascii=False).encode(), uncounted


async def _whole(answer: NativeAnswer, limit_bytes: int, *, cut: bool = False) -> bytes:
    body = bytearray()
    async for chunk in answer.chunks:
        body += chunk
        if len(body) > limit_bytes:
            if cut:
                return bytes(body[:limit_bytes])
            raise ModelError(f"the model's answer has more than {limit_bytes:,} bytes")
    return bytes(body)


async def _one(body: bytes) -> AsyncIterator[bytes]:
    yield body


def _is_json(body: bytes) -> bool:
    try:
        return isinstance(json.loads(body), dict)
    except ValueError:
        return False


def _tokens_of(body: bytes) -> Tokens:
    try:
        value: Any = json.loads(body)
    except ValueError:
        return Tokens()
    return tokens_in(cast("Mapping[str, Any]", value)) if isinstance(value, dict) else Tokens()


def _failed(error: ModelError) -> ModelFailed:
    return ModelFailed(
        error.message,
        status=error.status,
        retryable=error.retryable and not error.fatal,
        retry_after_s=error.retry_after_s,
        cause=error.cause,
    )

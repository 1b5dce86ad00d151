"""The model proxy: jobs ask here, the provider's key never leaves."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import anyio

from orchestrator.domain.jobs import Job
from orchestrator.errors import BadRequest, ModelFailed
from orchestrator.ports.membership import Membership
from orchestrator.ports.models import ModelAnswer, ModelError, ModelMessage, ModelProvider, ModelRequest
from orchestrator.services.budgets import Budgets
from orchestrator.services.outputs import Outputs

# What hands out messages: their results prove by being shown that what they carry was received.
_RECEIVING = frozenset({"network_inbox", "send_collaboration_request", "check_collaboration_result"})
_CHARS_PER_TOKEN = 4


class ModelService:
    """Answers a job's model requests."""

    def __init__(
        self, provider: ModelProvider, outputs: Outputs, membership: Membership, budgets: Budgets
    ) -> None:
        self._provider = provider
        self._budgets = budgets
        self._outputs = outputs
        self._membership = membership

    async def complete(self, job: Job, request: ModelRequest) -> ModelAnswer:
        """Pass one request to the job's model.

        The request proves that the model has seen the results in it: messages among them count as received
        (00-decisions 29). Cancelling it ends the provider's request.

        Raises:
            BadRequest: the request names another model than the job's; which one answers is not the
                container's to choose.
            BudgetExhausted: the job has used up its tokens or iterations; the provider was not asked.
            ModelFailed: the provider failed after its retries.
            NotFound: a message names an artifact that this job does not have.
        """
        if request.model not in {"", job.spec.model}:
            raise BadRequest("a job is answered by its own model; leave the model out")
        await self._membership.heartbeat(job.instance_id)
        estimate = _estimate(request)
        async with self._budgets.request(job, estimate_tokens=estimate) as charge:
            await self._prove_receipt(job, request.messages)
            messages = tuple([await self._resolved(job, message) for message in request.messages])
            try:
                answer = await self._answer(replace(request, model=job.spec.model, messages=messages))
            except asyncio.CancelledError:
                # Nobody waits any longer, but its provider has read it, and bills that.
                with anyio.CancelScope(shield=True):
                    await charge.answered(estimate)
                raise
            await charge.answered(answer.usage.input_tokens + answer.usage.output_tokens)
            return answer

    async def _prove_receipt(self, job: Job, messages: Sequence[ModelMessage]) -> None:
        """Messages that the model is shown are received; those of a call that failed wait again."""
        calls = _receiving_calls(messages)
        if calls:
            seen = [f"{job.attempt}:{call_id}" for call_id, is_error in calls.items() if not is_error]
            await self._membership.acknowledge(job.instance_id, seen)

    async def _answer(self, request: ModelRequest) -> ModelAnswer:
        try:
            return await self._provider.complete(request)
        except ModelError as error:
            raise ModelFailed(
                error.message,
                status=error.status,
                retryable=error.retryable and not error.fatal,
                retry_after_s=error.retry_after_s,
                cause=error.cause,
            ) from error

    async def _resolved(self, job: Job, message: ModelMessage) -> ModelMessage:
        if isinstance(message.content, str) or not any(part.get("artifact") for part in message.content):
            return message
        return replace(message, content=await self._with_data(job, message.content))

    async def _with_data(self, job: Job, parts: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        resolved: list[Mapping[str, Any]] = []
        for part in parts:
            if not part.get("artifact"):
                resolved.append(part)
                continue
            artifact = await self._outputs.find(job.id, str(part["artifact"]))
            data = b"".join([chunk async for chunk in self._outputs.read(artifact)])
            resolved.append({**part, "artifact": None, "data": base64.b64encode(data).decode()})
        return resolved


def _estimate(request: ModelRequest) -> int:
    """About how many tokens a request's text is."""
    texts = (
        message.content if isinstance(message.content, str) else "".join(map(str, message.content))
        for message in request.messages
    )
    return sum(map(len, texts)) // _CHARS_PER_TOKEN


def _receiving_calls(messages: Sequence[ModelMessage]) -> dict[str, bool]:
    """The last turn's answered calls that hand out messages, shown for the first time; True is an error."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role == "assistant":
            answers = {one.tool_call_id: one.is_error for one in messages[index + 1 :]}
            calls = (one.id for one in messages[index].tool_calls if one.name in _RECEIVING)
            return {call_id: answers[call_id] for call_id in calls if call_id in answers}
    return {}

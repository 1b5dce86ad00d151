"""The model proxy's routes."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Depends, Request

from orchestrator.domain.jobs import Job
from orchestrator.http.auth import caller_job, worker_gate
from orchestrator.http.gated import gated
from orchestrator.http.hang_ups import while_connected
from orchestrator.ports.models import (
    ModelAnswer,
    ModelMessage,
    ModelRequest,
    ModelTool,
    ModelToolCall,
)
from orchestrator.services.llm import ModelService
from orchestrator.services.tokens import TokenService
from tool_registry.definition import schema_text
from worker.protocol import paths
from worker.protocol.llm import (
    CompleteAnswer,
    CompleteRequest,
    CompleteWithToolsAnswer,
    CompleteWithToolsRequest,
    Message,
    Usage,
    WireToolCall,
)


def llm_router(tokens: TokenService, models: ModelService) -> APIRouter:
    """`llm/complete` and `llm/complete_with_tools`."""
    router = APIRouter(prefix="/worker/{job_id}", tags=["model"], route_class=gated(worker_gate(tokens)))

    @router.post(f"/{paths.LLM_COMPLETE}", summary="An answer without tools")
    async def complete(
        request: Request, asked: CompleteRequest, job: Job = Depends(caller_job)
    ) -> CompleteAnswer:
        answer = await while_connected(request.receive, models.complete(job, _request(job, asked)))
        return CompleteAnswer(
            content=answer.content, finish_reason=answer.finish_reason, usage=_usage(answer)
        )

    @router.post(f"/{paths.LLM_COMPLETE_WITH_TOOLS}", summary="An answer that may call tools")
    async def complete_with_tools(
        request: Request, asked: CompleteWithToolsRequest, job: Job = Depends(caller_job)
    ) -> CompleteWithToolsAnswer:
        tools = tuple(
            ModelTool(tool.name, tool.description, schema_text(tool.parameters)) for tool in asked.tools
        )
        asks = _request(job, asked, tools=tools, tool_choice=asked.tool_choice)
        answer = await while_connected(request.receive, models.complete(job, asks))
        return CompleteWithToolsAnswer(
            content=answer.content,
            finish_reason=answer.finish_reason,
            usage=_usage(answer),
            tool_calls=[
                WireToolCall(id=call.id, name=call.name, arguments=call.arguments)
                for call in answer.tool_calls
            ],
        )

    return router


def _request(job: Job, asked: CompleteRequest, **with_tools: Any) -> ModelRequest:
    return ModelRequest(
        job_id=job.id,
        model=asked.model or "",
        messages=tuple(_message(message) for message in asked.messages),
        max_tokens=asked.max_tokens,
        temperature=asked.temperature,
        stop_sequences=tuple(asked.stop_sequences),
        **with_tools,
    )


def _message(message: Message) -> ModelMessage:
    content = message.content
    return ModelMessage(
        role=message.role,
        content=content if isinstance(content, str) else [part.model_dump() for part in content],
        tool_call_id=message.tool_call_id,
        tool_calls=tuple(ModelToolCall(one.id, one.name, one.arguments) for one in message.tool_calls),
        is_error=message.is_error,
    )


def _usage(answer: ModelAnswer) -> Usage:
    usage = answer.usage
    return Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )

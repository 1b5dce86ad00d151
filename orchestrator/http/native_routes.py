"""The routes by which an agent in the box speaks to its model as the provider's own SDK does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Depends, Request, Response
from starlette.types import Message, Receive, Scope, Send

from orchestrator.domain.jobs import Job
from orchestrator.domain.native.names import ENDPOINTS, JOB_MODEL, Dialect, Endpoint, native_name, speaks
from orchestrator.errors import NotFound
from orchestrator.http.auth import caller_job, worker_gate
from orchestrator.http.gated import gated
from orchestrator.http.hang_ups import while_connected
from orchestrator.services.native_models import NativeAsk, NativeModelService
from orchestrator.services.tokens import TokenService
from worker.protocol import paths

# Credentials of any kind, cookies, accounts and proxies' words stop here.
_HEADERS = ("accept", "content-type", "anthropic-version", "anthropic-beta", "openai-beta")
_PATHS = {Dialect.OPENAI: paths.LLM_OPENAI, Dialect.ANTHROPIC: paths.LLM_ANTHROPIC}


def native_router(tokens: TokenService, models: NativeModelService) -> APIRouter:
    """`llm/openai/v1/...` and `llm/anthropic/v1/...`."""
    router = APIRouter(prefix="/worker/{job_id}", tags=["model"], route_class=gated(worker_gate(tokens)))
    for dialect in Dialect:
        for endpoint in sorted(ENDPOINTS[dialect]):
            _pass_through(router, models, dialect, endpoint)
        _model_list(router, dialect)
    return router


def _pass_through(
    router: APIRouter, models: NativeModelService, dialect: Dialect, endpoint: Endpoint
) -> None:
    name = f"{_PATHS[dialect]}/{endpoint}"

    @router.post(
        f"/{name}",
        name=f"native_{dialect}_{endpoint}",
        operation_id=f"{dialect}_{endpoint.replace('/', '_')}",
        summary=f"{_title(dialect)}'s {endpoint}, passed through to the job's model",
        description="The request and the answer are the provider's own, streamed or not.",
        response_class=Response,
        responses={200: _ANSWER},
        openapi_extra={"requestBody": _REQUEST},
    )
    async def native(request: Request, job: Job = Depends(caller_job)) -> Response:
        ask = NativeAsk(dialect, endpoint, _query(request), _kept(request), await request.body())
        return _PassedThrough(models, job, ask)


def _model_list(router: APIRouter, dialect: Dialect) -> None:
    """The job's model alone; the account's others are nobody's business in the box."""

    @router.get(
        f"/{_PATHS[dialect]}/models",
        operation_id=f"{dialect}_models",
        summary=f"The job's model, as {_title(dialect)} lists models",
    )
    async def native_models(job: Job = Depends(caller_job)) -> dict[str, Any]:
        found = [_entry(one) for one in _names(job, dialect)]
        return {"object": "list", "data": found, "has_more": False}

    @router.get(
        f"/{_PATHS[dialect]}/models/{{model:path}}",
        operation_id=f"{dialect}_model",
        summary=f"One model, as {_title(dialect)} shows it",
    )
    async def native_model(model: str, job: Job = Depends(caller_job)) -> dict[str, Any]:
        if model not in {*_names(job, dialect), JOB_MODEL}:
            raise NotFound("this job has no other model than its own")
        return _entry(model)


def _names(job: Job, dialect: Dialect) -> list[str]:
    model = job.spec.model
    return [native_name(model)] if model and speaks(model, dialect) else []


def _entry(name: str) -> dict[str, Any]:
    return {
        "id": name,
        "object": "model",
        "type": "model",
        "display_name": name,
        "created": 0,
        "created_at": "1970-01-01T00:00:00Z",
        "owned_by": "portside",
    }


def _kept(request: Request) -> Mapping[str, str]:
    return {name: request.headers[name] for name in _HEADERS if name in request.headers}


def _query(request: Request) -> str:
    """The one parameter that an SDK sends: Anthropic's, for what is in beta."""
    return "beta=true" if request.query_params.get("beta") == "true" else ""


class _PassedThrough(Response):
    """Opens the request to the model when it is sent, and ends it when its client hangs up."""

    def __init__(self, models: NativeModelService, job: Job, ask: NativeAsk) -> None:
        super().__init__()
        self._models = models
        self._job = job
        self._ask = ask

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer; errors before the first byte are raised."""
        await while_connected(receive, self._answer(send))

    async def _answer(self, send: Send) -> None:
        async with self._models.open(self._job, self._ask) as answer:
            headers = [(name.encode(), value.encode("latin-1")) for name, value in answer.headers.items()]
            await send({"type": "http.response.start", "status": answer.status, "headers": headers})
            async for chunk in answer.chunks:
                await send(_body(chunk, more=True))
            await send(_body(b"", more=False))


def _body(chunk: bytes, *, more: bool) -> Message:
    return {"type": "http.response.body", "body": chunk, "more_body": more}


def _title(dialect: Dialect) -> str:
    return {Dialect.OPENAI: "OpenAI", Dialect.ANTHROPIC: "Anthropic"}[dialect]


_OBJECT = {"schema": {"type": "object", "additionalProperties": True}}
_REQUEST = {
    "required": True,
    "description": "The provider's own request; `model` is the job's, or `portside`.",
    "content": {"application/json": _OBJECT},
}
_ANSWER: dict[str, Any] = {
    "description": "The provider's own answer",
    "content": {"application/json": _OBJECT, "text/event-stream": {"schema": {"type": "string"}}},
}

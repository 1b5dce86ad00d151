"""The application: routes, errors and the pure ASGI layers around them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from orchestrator.http.bodies import MAX_BODY_BYTES, BodyLimit
from orchestrator.http.execute_route import ExecuteRoute, describe_execute
from orchestrator.http.failures import Failures
from orchestrator.http.llm_routes import llm_router
from orchestrator.http.mcp_route import McpRoute, McpServices
from orchestrator.http.native_routes import native_router
from orchestrator.http.operator_agents import agents_router
from orchestrator.http.operator_jobs import OperatorServices, jobs_router
from orchestrator.http.operator_network import NetworkServices, network_router
from orchestrator.http.operator_representatives import representatives_router
from orchestrator.http.operator_secrets import secrets_router
from orchestrator.http.operator_tokens import tokens_router
from orchestrator.http.operator_tools import ToolServices, tools_router
from orchestrator.http.problems import (
    describe_problems,
    on_http_error,
    on_invalid_request,
    on_portside_error,
    on_store_error,
    problem,
    problem_response,
)
from orchestrator.http.worker_routes import WorkerServices, worker_router
from orchestrator.ports.errors import OwnerMissing, StoreUnavailable
from orchestrator.ports.ids import Ids
from orchestrator.services.agent_desk import AgentDesk
from orchestrator.services.executions import ExecutionService
from orchestrator.services.llm import ModelService
from orchestrator.services.native_models import NativeModelService
from orchestrator.services.secrets import SecretService
from tool_registry.errors import PortsideError
from worker.protocol import paths

_STREAMED = ("/" + paths.WORKSPACE_CHANGES, "/api/v1/workspaces")
_WASM_UPLOADS = "/api/v1/tools/wasm/"
_MAX_WASM_UPLOAD_BYTES = 96 * 1024 * 1024  # a component of 64 MiB in base64, and its sidecar

Ready = Callable[[], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class AppServices:
    """Everything the routes call.

    Attributes:
        ready: answers "" when the service can work, else what is missing.
    """

    worker: WorkerServices
    operators: OperatorServices
    tools: ToolServices
    agents: AgentDesk
    network: NetworkServices
    secrets: SecretService
    executions: ExecutionService
    models: ModelService
    native: NativeModelService
    mcp: McpServices
    ready: Ready
    ids: Ids


def create_app(services: AppServices) -> ASGIApp:
    """The whole ASGI application; the same behind every socket."""
    app = create_api(services)
    # Inside, as FastAPI would answer a bug with a page of its own; the hot route sees to itself.
    app.add_middleware(Failures, ids=services.ids)
    return ExecuteRoute(
        McpRoute(BodyLimit(app, _body_limit), services.mcp),
        tokens=services.worker.tokens,
        executions=services.executions,
        catalogues=services.worker.catalogues,
        ids=services.ids,
    )


def _body_limit(path: str) -> int | None:
    if path.endswith(_STREAMED):
        return None
    return _MAX_WASM_UPLOAD_BYTES if path.startswith(_WASM_UPLOADS) else MAX_BODY_BYTES


def create_api(services: AppServices) -> FastAPI:
    """The FastAPI part: every route but the hot one, which its OpenAPI document describes all the same."""
    app = FastAPI(title="Portside", version="1", docs_url=None, redoc_url=None, redirect_slashes=False)
    app.include_router(worker_router(services.worker))
    app.include_router(llm_router(services.worker.tokens, services.models))
    app.include_router(native_router(services.worker.tokens, services.native))
    app.include_router(jobs_router(services.operators))
    app.include_router(tools_router(services.tools))
    app.include_router(agents_router(services.operators.gate, services.agents))
    app.include_router(network_router(services.operators.gate, services.network))
    app.include_router(secrets_router(services.operators.gate, services.secrets))
    operators = services.operators
    app.include_router(representatives_router(operators.gate, services.mcp.representatives))
    app.include_router(tokens_router(operators.gate, services.mcp, operators.defaults.network))
    _health_routes(app, services.ready)
    app.add_exception_handler(PortsideError, on_portside_error)
    app.add_exception_handler(RequestValidationError, on_invalid_request)
    app.add_exception_handler(HTTPException, on_http_error)
    app.add_exception_handler(StoreUnavailable, on_store_error)
    app.add_exception_handler(OwnerMissing, on_store_error)
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        return describe_problems(describe_execute(generate()))

    app.openapi = openapi
    return app


def _health_routes(app: FastAPI, ready: Ready) -> None:
    @app.get("/health", tags=["health"], summary="The process is up")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/ready", tags=["health"], summary="The service can work")
    async def is_ready() -> Response:
        missing = await ready()
        if missing:
            return problem_response(problem("not_ready", missing, retryable=True))
        return JSONResponse({"status": "ok"})

"""`POST /worker/{job_id}/tools/execute`: the hot route, at ASGI level.

It does what the framework would - route, authorise, read, answer - in one pass over the body. The OpenAPI
document describes it by hand, from the same messages (`describe`).
"""

from __future__ import annotations

from typing import Any, cast

from pydantic_core import to_json
from starlette.types import ASGIApp, Receive, Scope, Send

from orchestrator.errors import BadRequest
from orchestrator.http.auth import worker_job
from orchestrator.http.bodies import read_body
from orchestrator.http.failures import logged_bug
from orchestrator.http.problems import problem_of, problem_response
from orchestrator.ports.errors import OwnerMissing, StoreUnavailable
from orchestrator.ports.ids import Ids
from orchestrator.services.catalogues import Catalogues
from orchestrator.services.executions import ExecutionService, WorkerCall
from orchestrator.services.tokens import TokenService
from tool_registry.arguments import strict_json
from tool_registry.errors import PortsideError
from worker.protocol.paths import IDEMPOTENCY_KEY, TOOLS_EXECUTE
from worker.protocol.problems import MEDIA_TYPE, Problem
from worker.protocol.tools import ExecuteAnswer, ExecuteRequest

_PREFIX = "/worker/"
_SUFFIX = "/" + TOOLS_EXECUTE
_KEY_HEADER = IDEMPOTENCY_KEY.lower().encode()
_MAX_KEY_CHARS = 256
_FIELDS = frozenset({"tool_name", "params"})


class ExecuteRoute:
    """Takes the one hot route; everything else goes to the application behind it."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        tokens: TokenService,
        executions: ExecutionService,
        catalogues: Catalogues,
        ids: Ids,
    ) -> None:
        self._app = app
        self._tokens = tokens
        self._executions = executions
        self._catalogues = catalogues
        self._ids = ids

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call, or pass the request on."""
        job_id = _job_id(scope)
        if job_id is None:
            await self._app(scope, receive, send)
            return
        try:
            job = await worker_job(scope, job_id, self._tokens)
            call = _call(scope, await read_body(scope, receive))
            answer = await self._executions.execute(job, call)
            version = self._catalogues.version_for(job)
            body = to_json({"output": answer.output, "catalog_version": version})
        except (PortsideError, StoreUnavailable, OwnerMissing) as error:
            await problem_response(problem_of(error))(scope, receive, send)
        except Exception:  # noqa: BLE001 - no layer is above this one
            await problem_response(logged_bug(scope, self._ids))(scope, receive, send)
        else:
            if answer.problem is not None:
                problem = {**answer.problem, "catalog_version": version}
                await problem_response(problem)(scope, receive, send)
            else:
                await _send_json(body, send)


async def _send_json(body: bytes, send: Send) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _job_id(scope: Scope) -> str | None:
    if scope["type"] != "http" or scope["method"] != "POST":
        return None
    path: str = scope["path"]
    if not path.startswith(_PREFIX) or not path.endswith(_SUFFIX):
        return None
    job_id = path[len(_PREFIX) : -len(_SUFFIX)]
    return job_id if job_id and "/" not in job_id else None


def _call(scope: Scope, body: bytes) -> WorkerCall:
    """The call in a request.

    Raises:
        BadRequest: it is not `{tool_name, params}`, strictly read.
    """
    try:
        asked = strict_json(body.decode())
    except ValueError as error:
        raise BadRequest(f"the body is not valid JSON: {error}") from None
    if not isinstance(asked, dict):
        raise BadRequest("the body must be an object with tool_name and params")
    fields = cast("dict[str, Any]", asked)
    if not fields.keys() <= _FIELDS:
        unknown = min(fields.keys() - _FIELDS)
        raise BadRequest(f"unknown field {unknown[:80]!r}; send tool_name and params only")
    name, params = fields.get("tool_name"), fields.get("params", {})
    if not isinstance(name, str) or not name:
        raise BadRequest("tool_name must be the name of a tool")
    if not isinstance(params, dict):
        raise BadRequest("params must be a JSON object")
    return WorkerCall(name, cast("dict[str, Any]", params), _key(scope), body)


def _key(scope: Scope) -> str | None:
    for name, value in scope["headers"]:
        if name == _KEY_HEADER:
            key = value.decode("latin-1").strip()
            if not key or len(key) > _MAX_KEY_CHARS:
                raise BadRequest(f"{IDEMPOTENCY_KEY} must have 1 to {_MAX_KEY_CHARS} characters")
            return key
    return None


def describe_execute(document: dict[str, Any]) -> dict[str, Any]:
    """The OpenAPI document with this route in it, made of the same messages."""
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for model in (ExecuteRequest, ExecuteAnswer, Problem):
        schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas.update(schema.pop("$defs", {}))
        schemas[model.__name__] = schema
    problem = {
        "description": "The call gave no output",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    document["paths"]["/worker/{job_id}/" + TOOLS_EXECUTE] = {
        "post": {
            "tags": ["worker"],
            "summary": "Run one hosted-visible tool",
            "operationId": "execute_tool",
            "parameters": [
                {"name": "job_id", "in": "path", "required": True, "schema": {"type": "string"}},
                {
                    "name": IDEMPOTENCY_KEY,
                    "in": "header",
                    "required": False,
                    "schema": {"type": "string", "maxLength": _MAX_KEY_CHARS},
                    "description": "Names the call; a repeat is answered, not run again.",
                },
            ],
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ExecuteRequest"}}},
            },
            "responses": {
                "200": {
                    "description": "The tool ran; `is_error` says whether it failed",
                    "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/ExecuteAnswer"}}
                    },
                },
                **{
                    str(status): problem for status in (400, 401, 403, 404, 409, 413, 422, 429, 502, 503, 504)
                },
            },
        }
    }
    return document

"""Every error as `application/problem+json`, in one shape."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from orchestrator.errors import EgressFailed, EgressRefused, ModelFailed
from orchestrator.ports.errors import OwnerMissing, StoreFull, StoreUnavailable
from tool_registry.errors import CallError, PortsideError, ToolNotHosted
from worker.protocol.problems import MEDIA_TYPE, STATUS, Problem, ProblemError

_TITLES = {
    "invalid_request": "The request can't be understood",
    "token_missing": "A token is needed",
    "token_invalid": "The token is not valid",
    "token_expired": "The token has expired",
    "token_revoked": "The token is void",
    "job_mismatch": "Another job's token",
    "forbidden": "Not from there",
    "tool_not_found": "No such tool",
    "tool_not_hosted": "The tool can't be used here",
    "invalid_params": "The arguments do not fit the tool's schema",
    "approval_required": "Approval is needed",
    "rate_limited": "Too many calls",
    "payload_too_large": "Too large",
    "tool_timeout": "The tool took too long",
    "tool_failed": "The tool broke",
    "tool_unavailable": "The tool's server is down",
    "idempotency_conflict": "The key was used for another call",
    "job_not_active": "The job has ended",
    "budget_exhausted": "The job's budget is used up",
    "model_error": "The model's provider failed",
    "egress_refused": "This host can't be reached by the job",
    "egress_failed": "The connection can't be made",
    "egress_unavailable": "Allowed hosts can't be reached from here",
    "not_ready": "The service can't work now",
    "internal": "Something broke inside",
}
_MAX_DETAIL_CHARS = 4_000


def problem_of(error: PortsideError | StoreUnavailable | OwnerMissing) -> dict[str, Any]:
    """The problem that stands for an error, as a JSON object."""
    if isinstance(error, StoreUnavailable):
        detail = "the database does not answer; try again"
        if isinstance(error, StoreFull):
            detail = "the disk is full, and nothing can be stored; make room under the state directory"
        return problem("internal", detail, status=503, retryable=True, retry_after_s=1.0)
    if isinstance(error, OwnerMissing):
        return problem("job_not_active", "the job was removed; its worker stops")
    status = error.status if isinstance(error, ModelFailed) else STATUS.get(error.code, 400)
    fields: dict[str, Any] = {"retryable": error.retryable}
    if isinstance(error, CallError):
        fields |= {
            "outcome": str(error.outcome),
            "retry_after_s": error.retry_after_s,
            "errors": [_violation(one) for one in error.violations],
            "hint": error.hint,
            "cause": error.cause,
        }
    if isinstance(error, ToolNotHosted):
        fields["reason"] = error.reason
    if isinstance(error, EgressRefused | EgressFailed):
        fields["cause"] = error.cause
    if isinstance(error, ModelFailed):
        fields |= {"retry_after_s": error.retry_after_s, "cause": error.cause}
    return problem(error.code, error.message, status=status, **fields)


def problem(code: str, detail: str, *, status: int | None = None, **fields: Any) -> dict[str, Any]:
    """A problem from its parts; empty fields are left out."""
    whole = Problem(
        title=_TITLES.get(code, code.replace("_", " ").capitalize()),
        status=status or STATUS.get(code, 400),
        code=code,
        detail=detail[:_MAX_DETAIL_CHARS],
        **fields,
    )
    return whole.model_dump(mode="json", exclude_none=True, exclude_defaults=False)


def problem_response(body: Mapping[str, Any]) -> Response:
    """The HTTP answer for a problem."""
    headers: dict[str, str] = {}
    retry_after = body.get("retry_after_s")
    if retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(retry_after)))
    if body["status"] == 401:
        headers["WWW-Authenticate"] = "Bearer"
    content = json.dumps(body, ensure_ascii=False).encode()
    return Response(content, status_code=body["status"], headers=headers, media_type=MEDIA_TYPE)


def _violation(violation: Any) -> ProblemError:
    return ProblemError(
        pointer=violation.pointer,
        rule=violation.rule,
        message=violation.message,
        expected=violation.expected,
        got=violation.got,
    )


async def on_portside_error(_request: Request, error: Exception) -> Response:
    """An error its caller can act on."""
    if not isinstance(error, PortsideError):
        raise error
    return problem_response(problem_of(error))


async def on_invalid_request(_request: Request, error: Exception) -> Response:
    """A body, query or path that breaks the message's model; values are not repeated."""
    if not isinstance(error, RequestValidationError):
        raise error
    found = [
        ProblemError(pointer=_pointer(one["loc"]), rule=str(one["type"]), message=str(one["msg"])[:500])
        for one in error.errors()[:20]
    ]
    listed = "; ".join(f"{one.pointer or 'the whole'}: {one.message}" for one in found)
    return problem_response(
        problem("invalid_request", f"the request is not as it should be: {listed}", errors=found)
    )


def _pointer(loc: Sequence[str | int]) -> str:
    """The JSON pointer to a part of the body, query or headers; bounded, since callers choose the names."""
    parts = [str(part)[:80].replace("~", "~0").replace("/", "~1") for part in loc[1:20]]
    return "".join(f"/{part}" for part in parts)


async def on_http_error(request: Request, error: Exception) -> Response:
    """What the framework itself refuses: unknown paths and methods, bodies it can't read."""
    if not isinstance(error, HTTPException):
        raise error
    status = error.status_code
    code = {404: "not_found", 413: "payload_too_large"}.get(status, "invalid_request")
    details = {404: "there is no such path", 405: f"this path does not take {request.method[:20]}"}
    response = problem_response(problem(code, details.get(status, str(error.detail)), status=status))
    response.headers.update(error.headers or {})
    return response


async def on_store_error(_request: Request, error: Exception) -> Response:
    """The database does not answer, or what a row belongs to is gone; nothing was accepted."""
    if not isinstance(error, StoreUnavailable | OwnerMissing):
        raise error
    return problem_response(problem_of(error))


def describe_problems(document: dict[str, Any]) -> dict[str, Any]:
    """The OpenAPI document with every operation's errors as they are, not as FastAPI supposes."""
    answer = {
        "description": "A problem",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for operations in document["paths"].values():
        for operation in operations.values():
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = answer
    for unused in ("HTTPValidationError", "ValidationError"):
        document["components"]["schemas"].pop(unused, None)
    return document

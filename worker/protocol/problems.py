"""Errors, in one shape everywhere: `application/problem+json`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from worker.protocol.model import Answer

MEDIA_TYPE = "application/problem+json"

# The one table from codes to HTTP statuses.
STATUS: dict[str, int] = {
    "invalid_request": 400,
    "token_missing": 401,
    "token_invalid": 401,
    "token_expired": 401,
    "token_revoked": 401,
    "job_mismatch": 403,
    "forbidden": 403,
    "tool_not_hosted": 403,
    "approval_required": 403,
    "not_found": 404,
    "tool_not_found": 404,
    "job_not_active": 409,
    "idempotency_conflict": 409,
    "conflict": 409,
    "name_taken": 409,
    "managed_elsewhere": 409,
    "kind_is_fixed": 409,
    "agent_has_work": 409,
    "not_served_by_jobs": 409,
    "not_a_human": 409,
    "task_taken": 409,
    "illegal_transition": 409,
    "changes_missing": 409,
    "consent_missing": 409,
    "payload_too_large": 413,
    "invalid_params": 422,
    "registration_refused": 422,
    "protected_name": 422,
    "duplicate_tool": 422,
    "illegal_name": 422,
    "invalid_schema": 422,
    "mcp_config_invalid": 422,
    "mcp_server_exists": 409,
    "mcp_server_not_found": 404,
    "mcp_login_failed": 422,
    "mcp_login_not_found": 404,
    "rate_limited": 429,
    "budget_exhausted": 403,
    "egress_refused": 403,
    "model_error": 502,
    "tool_failed": 502,
    "egress_failed": 502,
    "tool_unavailable": 503,
    "egress_unavailable": 503,
    "not_ready": 503,
    "tool_timeout": 504,
    "internal": 500,
}


class ProblemError(Answer):
    """One violation of a schema, as in `tool_registry.errors.Violation`."""

    pointer: str
    rule: str
    message: str
    expected: str | None = None
    got: str | None = None


class Problem(Answer):
    """What went wrong, what it means for the call, and what to do.

    Attributes:
        code: stable name, from `STATUS`.
        outcome: what is known about the effects of a tool call.
        errors: violations of the tool's schema, at most 20.
        catalog_version: the registry's present catalogue, on `tools/execute`.
    """

    type: str = "about:blank"
    title: str
    status: int
    code: str
    detail: str
    retryable: bool = False
    retry_after_s: float | None = None
    outcome: Literal["not_run", "failed", "unknown"] | None = None
    errors: list[ProblemError] = Field(default_factory=list[ProblemError], max_length=20)
    hint: str | None = None
    reason: str | None = None
    cause: str | None = None
    catalog_version: str | None = None

"""An error answer of the orchestrator, as an exception."""

from __future__ import annotations

import httpx
from pydantic import ValidationError

from tool_registry.errors import Outcome, RemoteProblem, Violation
from worker.protocol.problems import Problem

_SHOWN_CHARS = 200


def problem_of(response: httpx.Response) -> RemoteProblem:
    """The problem that an answer reports; also of an answer that is none, such as a proxy's page."""
    try:
        problem = Problem.model_validate_json(response.content)
    except ValidationError:
        return _unexplained(response)
    return RemoteProblem(
        problem.detail,
        code=problem.code,
        retryable=problem.retryable,
        outcome=Outcome(problem.outcome) if problem.outcome else None,
        hint=problem.hint,
        retry_after_s=problem.retry_after_s if problem.retry_after_s is not None else _retry_after(response),
        violations=tuple(
            Violation(one.pointer, one.rule, one.message, one.expected, one.got) for one in problem.errors
        ),
        cause=problem.cause or problem.reason,
    )


def _unexplained(response: httpx.Response) -> RemoteProblem:
    text = response.text.strip()[:_SHOWN_CHARS]
    return RemoteProblem(
        f"HTTP {response.status_code} without a problem document: {text or 'empty body'}",
        code="rate_limited" if response.status_code == 429 else "internal",
        retryable=response.status_code in {429, 502, 503, 504},
        retry_after_s=_retry_after(response),
    )


def _retry_after(response: httpx.Response) -> float | None:
    """Seconds of a `Retry-After` header; a date or anything else counts as none."""
    try:
        seconds = float(response.headers.get("Retry-After", ""))
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None

"""What a job's model requests may come to, decided without a clock or a store."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.domain.jobs import Job


@dataclass(frozen=True, slots=True)
class UnderWay:
    """Requests that were let through and have no answer yet; `tokens` is an estimate of their input."""

    requests: int = 0
    tokens: int = 0


def exhausted(job: Job, under_way: UnderWay) -> str | None:
    """Why a job may send no further model request; None when it may.

    A budget stops the next request, so the last answer may pass the token budget by its own size.
    """
    spec = job.spec
    if job.model_requests + under_way.requests >= spec.max_iterations:
        return (
            f"the limit of {spec.max_iterations} iterations was reached: {job.model_requests} model requests"
        )
    if spec.max_tokens is not None and job.tokens_used + under_way.tokens >= spec.max_tokens:
        return f"the limit of {spec.max_tokens:,} tokens was reached ({job.tokens_used:,} used)"
    return None

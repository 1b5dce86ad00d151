"""The operator API's messages about first calls: of one job, and of a tool over many jobs."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any

from pydantic import BaseModel

from orchestrator.domain.jobs import Job, JobState
from orchestrator.ports.audit import ToolStats
from orchestrator.services.contracts import FirstCall, JobContract


class FirstCallView(BaseModel):
    """A job's first call of a tool; `errors` says how its arguments broke the schema."""

    at: datetime
    tool_name: str
    source: str
    call_id: str
    verdict: str
    schema_verdict: str
    errors: list[dict[str, Any]]
    adjustments: list[dict[str, Any]]

    @classmethod
    def of(cls, call: FirstCall) -> FirstCallView:
        """The view of a first call."""
        return cls(
            at=call.at,
            tool_name=call.tool_name,
            source=call.source,
            call_id=call.call_id,
            verdict=call.verdict,
            schema_verdict=call.schema_verdict,
            errors=[dict(one) for one in call.errors],
            adjustments=[dict(one) for one in call.adjustments],
        )


class ContractView(BaseModel):
    """What a job's model was shown, and each tool's first call."""

    job_id: str
    state: JobState
    catalog_hash: str | None
    request_hash: str | None
    identical: bool | None
    tools: int
    first_calls: list[FirstCallView]

    @classmethod
    def of(cls, job: Job, contract: JobContract) -> ContractView:
        """The view of a job's contract."""
        return cls(
            job_id=job.id,
            state=job.state,
            catalog_hash=contract.catalog_hash,
            request_hash=contract.request_hash,
            identical=contract.identical,
            tools=contract.tools,
            first_calls=[FirstCallView.of(one) for one in contract.first_calls],
        )


class FrequentView(BaseModel):
    """Something counted, and where in the arguments."""

    pointer: str
    what: str
    count: int
    message: str


class SpreadView(BaseModel):
    """An amount over many calls."""

    median: int
    p95: int
    largest: int


class ToolStatsView(BaseModel):
    """How a tool fares with models; `first_call_rate` is 0 to 1, None before a checked first call."""

    tool_name: str
    calls: int
    verdicts: dict[str, int]
    first_calls: int
    first_calls_fit: int
    first_calls_unchecked: int
    first_call_rate: float | None
    refused: int
    violations: list[FrequentView]
    retries_mean: float
    retries_largest: int
    never_fitted: int
    adjustments: list[FrequentView]
    latency_ms: SpreadView
    output_bytes: SpreadView

    @classmethod
    def of(cls, stats: ToolStats) -> ToolStatsView:
        """The view of a tool's statistics."""
        return cls.model_validate({**asdict(stats), "first_call_rate": stats.first_call_rate})

"""The operator API's messages about jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from orchestrator.domain.jobs import LEAST_MEMORY_BYTES, Job, JobMode, JobSpec, JobState
from orchestrator.http.operator_request import OperatorRequest
from orchestrator.ports.audit import AuditRow


class JobRequest(OperatorRequest):
    """A job to run; `default_model` is for an agent whose definition names none."""

    task: str = Field(min_length=1, max_length=1_000_000)
    command: str | None = Field(default=None, min_length=1, max_length=32_000)
    title: str = Field(default="", max_length=200)
    agent: str = Field(default="", max_length=64)
    network: str = Field(default="", max_length=64)
    mode: JobMode = JobMode.HOSTED
    model: str = Field(default="", max_length=500)
    default_model: str = Field(default="", max_length=500)
    image: str = Field(default="", max_length=500)
    system_prompt: str | None = Field(default=None, max_length=200_000)
    grants: list[str] = Field(default_factory=list[str], max_length=100)
    coerce: Literal["never", "safe"] = "never"
    secrets: dict[str, str] = Field(default_factory=dict[str, str], max_length=20)
    allow_hosts: list[str] = Field(default_factory=list[str], max_length=100)
    timeout_s: float = Field(default=3600.0, gt=0, le=86_400)
    max_iterations: int = Field(default=200, ge=1, le=10_000)
    max_tokens: int | None = Field(default=None, ge=1)
    memory_bytes: int | None = Field(default=None, ge=LEAST_MEMORY_BYTES)
    cpus: float | None = Field(default=None, gt=0, le=512)
    workspace_sha256: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")

    def spec(self, *, agent: str, network: str) -> JobSpec:
        """The job's specification, with defaults for what was left out."""
        return JobSpec(
            title=self.title or _title(self.task),
            task=self.task,
            command=self.command,
            agent=self.agent or agent,
            network=self.network or network,
            mode=self.mode,
            model=self.model,
            image=self.image,
            system_prompt=self.system_prompt,
            grants=frozenset(self.grants),
            coerce_safe=self.coerce == "safe",
            secrets=dict(self.secrets),
            allow_hosts=tuple(self.allow_hosts),
            timeout_s=self.timeout_s,
            max_iterations=self.max_iterations,
            max_tokens=self.max_tokens,
            memory_bytes=self.memory_bytes,
            cpus=self.cpus,
            workspace_sha256=self.workspace_sha256,
        )


def _title(task: str) -> str:
    line = next(iter(task.strip().splitlines()), "")
    return line if len(line) <= 80 else line[:77] + "..."


class JobView(BaseModel):
    """A job as operators see it; `secrets` are names, each with its environment variable."""

    id: str
    title: str
    task: str
    command: str | None
    state: JobState
    reason: str
    message: str | None
    agent: str
    instance_id: str
    network: str
    mode: JobMode
    model: str
    image: str
    attempt: int
    iterations: int
    exit_code: int | None
    max_iterations: int
    model_requests: int
    max_tokens: int | None
    tokens_used: int
    grants: list[str]
    coerce: Literal["never", "safe"]
    secrets: dict[str, str]
    allow_hosts: list[str]
    created_at: datetime
    registered_at: datetime | None
    deadline_at: datetime | None
    finished_at: datetime | None
    changes_bytes: int | None

    @classmethod
    def of(cls, job: Job) -> JobView:
        """The view of a job."""
        spec = job.spec
        return cls(
            id=job.id,
            title=spec.title,
            task=spec.task,
            command=spec.command,
            state=job.state,
            reason=job.reason,
            message=job.message,
            agent=spec.agent,
            instance_id=job.instance_id,
            network=spec.network,
            mode=spec.mode,
            model=spec.model,
            image=spec.image,
            attempt=job.attempt,
            iterations=job.iterations,
            exit_code=job.exit_code,
            max_iterations=spec.max_iterations,
            model_requests=job.model_requests,
            max_tokens=spec.max_tokens,
            tokens_used=job.tokens_used,
            grants=sorted(spec.grants),
            coerce="safe" if spec.coerce_safe else "never",
            secrets=dict(spec.secrets),
            allow_hosts=list(spec.allow_hosts),
            created_at=job.created_at,
            registered_at=job.registered_at,
            deadline_at=job.deadline_at,
            finished_at=job.finished_at,
            changes_bytes=job.changes_bytes,
        )


class EventView(BaseModel):
    """One event of a timeline."""

    position: int
    source: str
    type: str
    at: datetime
    data: dict[str, Any]


class CallView(BaseModel):
    """One tool call of a job; `first_call` marks the job's first call of that tool."""

    at: datetime
    tool_name: str
    source: str
    call_id: str
    params: dict[str, Any]
    verdict: str
    schema_verdict: str
    rules: list[str]
    violations: list[dict[str, str | None]]
    adjustments: list[dict[str, str]]
    duration_ms: int
    output_bytes: int
    first_call: bool

    @classmethod
    def of(cls, row: AuditRow, *, first_call: bool) -> CallView:
        """The view of an audit row."""
        return cls(
            at=row.at,
            tool_name=row.tool_name,
            source=row.source,
            call_id=row.call_id,
            params=row.params,
            verdict=row.verdict,
            schema_verdict=row.schema_verdict,
            rules=list(row.rules),
            violations=[dict(one) for one in row.violations],
            adjustments=[dict(one) for one in row.adjustments],
            duration_ms=row.duration_ms,
            output_bytes=row.output_bytes,
            first_call=first_call,
        )


class PromptRequest(OperatorRequest):
    """Something to say to a running job."""

    text: str = Field(min_length=1, max_length=100_000)


class WorkspaceView(BaseModel):
    """A stored workspace."""

    sha256: str
    size_bytes: int

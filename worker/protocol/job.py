"""The job as its worker sees it, and how it ends."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, cast

from pydantic import Field, model_validator

from worker.protocol.model import Answer, Count, Request

JobOutcome = Literal["completed", "failed", "cancelled", "limit"]


class AgentIdentity(Answer):
    """Who the job acts as in the agent network."""

    name: str
    instance_id: str
    network: str


class JobLimits(Answer):
    """Where the loop has to stop."""

    max_iterations: int = Field(default=200, ge=1)
    deadline_at: datetime
    max_tokens: int | None = None


class WorkspaceInfo(Answer):
    """The starting workspace; no `sha256` means that it is empty."""

    root: str = "/workspace"
    sha256: str | None = None
    size_bytes: int | None = None


class JobDescription(Answer):
    """Everything a worker needs to start; with a `command`, that runs as the agent in place of the loop.

    `allow_hosts` are the hosts that its commands may reach; none are no network at all.
    """

    job_id: str
    title: str
    task: str
    command: str | None = None
    attempt: int = 1
    agent: AgentIdentity
    model: str | None = None
    system_prompt: str | None = None
    coerce: Literal["never", "safe"] = "never"
    allow_hosts: list[str] = Field(default_factory=list[str])
    limits: JobLimits
    workspace: WorkspaceInfo = WorkspaceInfo()
    protocol_version: str


class Credential(Answer):
    """A secret granted to the job's child processes."""

    env_var: str
    value: str = Field(repr=False)


class StatusReport(Request):
    """Where the worker stands."""

    state: Literal["starting", "running", "finishing"]
    message: str | None = Field(default=None, max_length=2000)
    iteration: Count


class CompletionReport(Request):
    """How the job ended. `success` is the older spelling of `outcome`."""

    outcome: JobOutcome
    reason: str | None = Field(default=None, max_length=4000)
    message: str | None = Field(default=None, max_length=65_536)
    iterations: Count = 0
    result: Any = None

    @model_validator(mode="before")
    @classmethod
    def _map_success(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data  # pydantic says what is wrong with it
        fields = cast("dict[str, Any]", data)
        success = fields.get("success")
        if not isinstance(success, bool) or "outcome" in fields:
            return fields  # pydantic refuses what is neither spelling, or both
        rest = {key: value for key, value in fields.items() if key != "success"}
        return {**rest, "outcome": "completed" if success else "failed"}


class CompletionAnswer(Answer):
    """The report was stored."""

    status: Literal["ok"] = "ok"


class TokenAnswer(Answer):
    """A fresh token of the same job and attempt."""

    token: str = Field(repr=False)
    expires_at: datetime


class Delivery(Answer):
    """Something for the agent that came from outside; sent again until it is acknowledged."""

    delivery_id: str
    kind: Literal["prompt", "message", "task_offer", "cancel"]
    text: str
    thread_id: str | None = None
    task_id: str | None = None


class Deliveries(Answer):
    """What the prompt poll answers."""

    deliveries: list[Delivery]

"""Jobs: their states, and what may follow what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, NewType, cast

JobId = NewType("JobId", str)


class JobState(StrEnum):
    """Where a job stands."""

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    CANCELLING = "cancelling"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    LOST = "lost"

    @property
    def terminal(self) -> bool:
        """Nothing follows."""
        return not TRANSITIONS[self]

    @property
    def active(self) -> bool:
        """A worker's token is good: the job is starting, running or being cancelled."""
        return self in ACTIVE


LEAST_MEMORY_BYTES = 64 * 2**20
_ENDS = frozenset({JobState.FAILED, JobState.CANCELLED, JobState.TIMED_OUT, JobState.LOST})

TRANSITIONS: Mapping[JobState, frozenset[JobState]] = {
    JobState.QUEUED: frozenset({JobState.STARTING, JobState.CANCELLED, JobState.FAILED}),
    JobState.STARTING: _ENDS | {JobState.RUNNING, JobState.CANCELLING},
    JobState.RUNNING: _ENDS | {JobState.COMPLETED, JobState.CANCELLING},
    # A result that arrives while the container is being stopped still counts.
    JobState.CANCELLING: _ENDS | {JobState.COMPLETED},
    JobState.COMPLETED: frozenset(),
    JobState.FAILED: frozenset(),
    JobState.CANCELLED: frozenset(),
    JobState.TIMED_OUT: frozenset(),
    JobState.LOST: frozenset(),
}

ACTIVE = frozenset({JobState.STARTING, JobState.RUNNING, JobState.CANCELLING})


class JobMode(StrEnum):
    """Where the loop runs."""

    HOSTED = "hosted"
    IN_PROCESS = "in-process"


@dataclass(frozen=True, slots=True)
class JobSpec:
    """What was asked for; never changes after the job was accepted.

    Attributes:
        command: shell text that runs as the agent in the loop's place; None is the loop.
        grants: approval-gated tools that this job may use.
        coerce_safe: arguments that are text where no text may stand are read as the value they spell.
        secrets: secret name to environment variable of the job's child processes.
        allow_hosts: patterns of the hosts that its commands may reach; none are no network at all.
        timeout_s: from the start of the container.
        max_iterations: model requests that are answered, at most.
        max_tokens: of all its model requests, input and output together; None is no limit.
        memory_bytes: None is the default limit; a number is an explicit one. So for `cpus`.
        workspace_sha256: of the starting workspace's tar; None is an empty workspace.
    """

    title: str
    task: str
    command: str | None = None
    agent: str = "coder"
    network: str = "local"
    mode: JobMode = JobMode.HOSTED
    model: str = ""
    image: str = ""
    system_prompt: str | None = None
    grants: frozenset[str] = frozenset()
    secrets: Mapping[str, str] = field(default_factory=dict[str, str])
    timeout_s: float = 3600.0
    max_iterations: int = 200
    max_tokens: int | None = None
    memory_bytes: int | None = None
    cpus: float | None = None
    workspace_sha256: str | None = None
    workspace_bytes: int | None = None
    coerce_safe: bool = False
    allow_hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Job:
    """One job, as stored.

    Attributes:
        attempt: counts launches; tokens and containers of an older attempt are void.
        reason: why it ended, in one sentence; empty while it runs or when it simply completed.
        result: the worker's report, `{outcome, reason, value}`; None before.
        model_requests: how many the model proxy has answered; `tokens_used` is what they came to.
        changes_sha256: of the patch that the worker uploaded, or that was made of what it left; None before.
        sandbox_id: the engine's id of the present attempt's container, when it is known.
        registered_at: the first authenticated `GET job` of the present attempt.
        working_at: the present attempt's worker had its workspace in place and began; None before.
    """

    id: JobId
    spec: JobSpec
    state: JobState
    created_at: datetime
    instance_id: str
    attempt: int = 0
    reason: str = ""
    message: str | None = None
    result: Any = None
    iterations: int = 0
    model_requests: int = 0
    tokens_used: int = 0
    changes_sha256: str | None = None
    changes_bytes: int | None = None
    sandbox_id: str | None = None
    cancel_requested_at: datetime | None = None
    starting_at: datetime | None = None
    registered_at: datetime | None = None
    working_at: datetime | None = None
    deadline_at: datetime | None = None
    finished_at: datetime | None = None

    @property
    def reported(self) -> bool:
        """Its worker has had its last word."""
        return self.result is not None

    @property
    def unsaved(self) -> bool:
        """It ended, and what its worker changed is in its container and nowhere else."""
        return self.state.terminal and self.working_at is not None and self.changes_sha256 is None

    @property
    def exit_code(self) -> int | None:
        """Of its command, negative for a signal's number; None without a command, or before its end."""
        result: Any = self.result
        if self.spec.command is None or not isinstance(result, dict):
            return None
        value: Any = cast("dict[str, Any]", result).get("value")
        code: Any = cast("dict[str, Any]", value).get("exit_code") if isinstance(value, dict) else None
        return code if isinstance(code, int) else None

    def moved(self, state: JobState, **changes: Any) -> Job:
        """The job in another state.

        Raises:
            IllegalTransition: `state` may not follow the present one.
        """
        if state not in TRANSITIONS[self.state]:
            raise IllegalTransition(self.state, state)
        return replace(self, state=state, **changes)


class IllegalTransition(Exception):
    """A state may not follow another."""

    def __init__(self, present: JobState, wanted: JobState) -> None:
        super().__init__(f"a job that is {present} can't become {wanted}")
        self.present = present
        self.wanted = wanted

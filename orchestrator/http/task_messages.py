"""The operator API's messages about the tasks of a network."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

from orchestrator.domain.network.task_states import TaskState
from orchestrator.domain.network.tasks import HistoryEntry, Task
from orchestrator.http.operator_request import OperatorRequest
from orchestrator.services.network_tasks import TaskRecord

_Text = Field(min_length=1, max_length=256 * 1024)


class DelegateRequest(OperatorRequest):
    """Work for somebody."""

    objective: str = _Text
    title: str | None = Field(default=None, max_length=200)
    acceptance_criteria: list[str] = Field(default_factory=list[str], max_length=50)
    to: str | None = None
    resource: str | None = None


class MoveRequest(OperatorRequest):
    """A task's next state."""

    status: Literal["accepted", "working", "blocked", "completed", "failed", "cancelled"]
    reason: str = Field(default="", max_length=64 * 1024)


class TaskView(BaseModel):
    """A task."""

    task_id: str
    title: str
    objective: str
    acceptance_criteria: list[str]
    state: TaskState
    reason: str
    creator: str
    assignee: str | None
    assignee_instance: str | None
    target: str | None
    resource: str | None
    attempt: int
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, task: Task) -> TaskView:
        """The view of a task."""
        target = task.target
        return cls(
            task_id=task.id,
            title=task.title,
            objective=task.objective,
            acceptance_criteria=list(task.acceptance_criteria),
            state=task.state,
            reason=task.reason,
            creator=task.creator,
            assignee=task.assignee,
            assignee_instance=task.assignee_instance,
            target=target.agent or target.group or target.instance_id,
            resource=task.resource,
            attempt=task.attempt,
            created_at=task.created_at,
            updated_at=task.updated_at,
        )


class HistoryView(BaseModel):
    """One change of a task; `agent` is empty for the network's own."""

    at: datetime
    state: TaskState
    agent: str
    reason: str

    @classmethod
    def of(cls, entry: HistoryEntry) -> HistoryView:
        """The view of a change."""
        return cls(at=entry.at, state=entry.state, agent=entry.agent, reason=entry.reason)


class ArtifactView(BaseModel):
    """A published reference."""

    artifact_id: str
    uri: str
    type: str
    label: str
    agent: str


class TaskDetail(TaskView):
    """A task with all that is remembered of it."""

    history: list[HistoryView]
    artifacts: list[ArtifactView]

    @classmethod
    def of_record(cls, record: TaskRecord) -> TaskDetail:
        """The detail of a task."""
        return cls(
            **TaskView.of(record.task).model_dump(),
            history=[HistoryView.of(one) for one in record.history],
            artifacts=[
                ArtifactView(artifact_id=one.id, uri=one.uri, type=one.type, label=one.label, agent=one.agent)
                for one in record.artifacts
            ],
        )

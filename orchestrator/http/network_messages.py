"""The operator API's messages about what goes on in a network."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

from orchestrator.domain.network.claims import Claim
from orchestrator.domain.network.task_states import TaskState
from orchestrator.domain.network.tasks import HistoryEntry, Task
from orchestrator.domain.network.threads import Delivery, Message, Thread
from orchestrator.http.operator_messages import OperatorRequest
from orchestrator.services.network_inbox import InboxItem
from orchestrator.services.network_mail import Sent
from orchestrator.services.network_overview import NetworkStatus, ThreadRecord
from orchestrator.services.network_signatures import Verdict
from orchestrator.services.network_tasks import TaskRecord

_Text = Field(min_length=1, max_length=256 * 1024)


class AskRequest(OperatorRequest):
    """A question."""

    body: str = _Text
    to: str | None = None
    to_instance: str | None = None
    thread_id: str | None = None
    subject: str | None = Field(default=None, max_length=200)


class ReplyRequest(OperatorRequest):
    """An answer."""

    thread_id: str
    body: str = _Text


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


class SeenRequest(OperatorRequest):
    """What a human was shown."""

    delivery_ids: list[str] = Field(max_length=1_000)


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


class StatusView(BaseModel):
    """A network in numbers; the tasks by their state."""

    network: str
    agents: int
    available: int
    tasks: dict[str, int]
    blocked: list[TaskView]
    claims: int
    undelivered: int

    @classmethod
    def of(cls, status: NetworkStatus) -> StatusView:
        """The view of a network."""
        return cls(
            network=status.network,
            agents=status.agents,
            available=status.available,
            tasks={state.value: count for state, count in sorted(status.tasks.items())},
            blocked=[TaskView.of(one) for one in status.blocked],
            claims=status.claims,
            undelivered=status.undelivered,
        )


class CopyView(BaseModel):
    """One recipient's copy of a message, and how far it has come."""

    agent: str
    instance_id: str | None
    state: str

    @classmethod
    def of(cls, one: Delivery) -> CopyView:
        """The view of a copy."""
        return cls(agent=one.agent, instance_id=one.instance_id, state=one.state.value)


class MessageView(BaseModel):
    """A message."""

    message_id: str
    thread_id: str
    sequence: int
    kind: str
    sender: str
    sender_instance: str
    body: str
    subject: str
    task_id: str | None
    resource: str | None
    sent_at: datetime
    signed: bool
    copies: list[CopyView]

    @classmethod
    def of(cls, message: Message, copies: Sequence[Delivery]) -> MessageView:
        """The view of a message."""
        return cls(
            message_id=message.id,
            thread_id=message.thread_id,
            sequence=message.sequence,
            kind=message.kind.value,
            sender=message.sender,
            sender_instance=message.sender_instance,
            body=message.body,
            subject=message.subject,
            task_id=message.task_id,
            resource=message.resource,
            sent_at=message.created_at,
            signed=bool(message.signature),
            copies=[CopyView.of(one) for one in copies],
        )

    @classmethod
    def sent(cls, sent: Sent) -> MessageView:
        """The view of what was just sent."""
        return cls.of(sent.message, sent.deliveries)


class ThreadView(BaseModel):
    """A thread."""

    thread_id: str
    subject: str
    participants: list[str]
    created_at: datetime

    @classmethod
    def of(cls, thread: Thread) -> ThreadView:
        """The view of a thread."""
        return cls(
            thread_id=thread.id,
            subject=thread.subject,
            participants=sorted({one.agent for one in thread.participants}),
            created_at=thread.created_at,
        )


class ThreadDetail(ThreadView):
    """A thread with its messages, oldest first."""

    messages: list[MessageView]

    @classmethod
    def of_record(cls, record: ThreadRecord) -> ThreadDetail:
        """The detail of a thread."""
        return cls(
            **ThreadView.of(record.thread).model_dump(),
            messages=[MessageView.of(one, record.copies[one.id]) for one in record.messages],
        )


class ClaimView(BaseModel):
    """A claim that holds."""

    claim_id: str
    agent: str
    scope: str
    scope_type: str
    resource_id: str | None
    task_id: str | None
    expires_at: datetime

    @classmethod
    def of(cls, claim: Claim) -> ClaimView:
        """The view of a claim."""
        return cls(
            claim_id=claim.id,
            agent=claim.agent,
            scope=claim.scope.text,
            scope_type=claim.scope.type.value,
            resource_id=claim.scope.resource_id,
            task_id=claim.task_id,
            expires_at=claim.expires_at,
        )


class InboxItemView(BaseModel):
    """A message, or the offer of a task."""

    delivery_id: str
    message: MessageView | None
    task: TaskView | None

    @classmethod
    def of(cls, item: InboxItem) -> InboxItemView:
        """The view of what waits."""
        return cls(
            delivery_id=item.delivery.id,
            message=None if item.message is None else MessageView.of(item.message, []),
            task=None if item.task is None else TaskView.of(item.task),
        )


class FaultView(BaseModel):
    """What is wrong with a thread."""

    thread_id: str
    sequence: int
    message_id: str
    problem: str


class VerdictView(BaseModel):
    """What the signatures say."""

    threads: int
    signed: int
    unsigned: int
    faults: list[FaultView]

    @classmethod
    def of(cls, verdict: Verdict) -> VerdictView:
        """The view of a verdict."""
        return cls(
            threads=verdict.threads,
            signed=verdict.signed,
            unsigned=verdict.unsigned,
            faults=[
                FaultView(
                    thread_id=one.thread_id,
                    sequence=one.sequence,
                    message_id=one.message_id,
                    problem=one.problem,
                )
                for one in verdict.faults
            ],
        )

"""The operator API's messages about what is said in a network."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pydantic import BaseModel, Field

from orchestrator.domain.network.threads import Delivery, Message, Thread
from orchestrator.http.operator_request import OperatorRequest
from orchestrator.http.task_messages import TaskView
from orchestrator.services.network_inbox import InboxItem
from orchestrator.services.network_mail import Sent
from orchestrator.services.network_overview import ThreadRecord
from orchestrator.services.network_signatures import Verdict

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


class SeenRequest(OperatorRequest):
    """What a human was shown."""

    delivery_ids: list[str] = Field(max_length=1_000)


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

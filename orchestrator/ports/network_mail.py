"""What is kept of a network's mail: threads, messages, requests and copies; parts of `NetworkStore`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from orchestrator.domain.network.collaboration import CollaborationRequest
from orchestrator.domain.network.identities import (
    Actor,
    AgentName,
    InstanceId,
    MessageId,
    RequestId,
    TaskId,
    ThreadId,
)
from orchestrator.domain.network.threads import Delivery, Message, Thread


class MailReader(Protocol):
    """What one network has of them."""

    def thread(self, thread_id: ThreadId) -> Thread | None:
        """A thread."""
        ...

    def threads(self, limit: int) -> list[Thread]:
        """Threads, the youngest first."""
        ...

    def messages_of_thread(self, thread_id: ThreadId) -> list[Message]:
        """A thread's messages, oldest first."""
        ...

    def thread_length(self, thread_id: ThreadId) -> int:
        """How many signed messages were stored in a thread."""
        ...

    def recent_messages(self, limit: int) -> list[Message]:
        """The newest messages, newest first."""
        ...

    def recent_traffic(self, limit: int) -> list[tuple[AgentName, AgentName]]:
        """Sender and recipient of the newest copies of messages, newest first."""
        ...

    def message(self, message_id: MessageId) -> Message | None:
        """A message."""
        ...

    def message_of_call(self, instance_id: InstanceId, call_id: str) -> Message | None:
        """The message that a call sent."""
        ...

    def request(self, request_id: RequestId) -> CollaborationRequest | None:
        """A request for collaboration."""
        ...

    def request_of_call(self, instance_id: InstanceId, call_id: str) -> CollaborationRequest | None:
        """The request that a call sent."""
        ...

    def request_of_thread(self, thread_id: ThreadId) -> CollaborationRequest | None:
        """The request that a thread began with."""
        ...

    def unanswered_requests(self, agent: AgentName, since: datetime) -> list[CollaborationRequest]:
        """Requests from or to an agent, without an answer, whose time ends after `since`; oldest first."""
        ...

    def deliveries_of_message(self, message_id: MessageId) -> list[Delivery]:
        """A message's copies, in the order they were added."""
        ...

    def deliveries_of_task(self, task_id: TaskId) -> list[Delivery]:
        """A task's offers, in the order they were added."""
        ...

    def open_deliveries(self, actor: Actor, limit: int) -> list[Delivery]:
        """The first deliveries that are `open_to` the actor, in the order they were added."""
        ...

    def undelivered(self, instance_id: InstanceId) -> list[Delivery]:
        """What is pinned to an instance or held by it, and waits or is held, in the order it was added."""
        ...

    def undelivered_to(self, agent: AgentName) -> list[Delivery]:
        """What waits for an agent or is held by an instance of it, in the order it was added."""
        ...


class MailWriter(Protocol):
    """Changes of them in one network; `put_*` stores a new row or replaces the one of the same id."""

    def put_thread(self, thread: Thread) -> None:
        """Store a thread."""
        ...

    def add_message(self, message: Message) -> None:
        """Store a message of a stored thread as the thread's next one, signed."""
        ...

    def put_request(self, request: CollaborationRequest) -> None:
        """Store a request for collaboration."""
        ...

    def put_deliveries(self, deliveries: Sequence[Delivery]) -> None:
        """Store deliveries: new ones behind all that are there, known ones in their old places."""
        ...

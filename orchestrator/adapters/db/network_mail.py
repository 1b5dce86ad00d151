"""A network's threads, messages, requests and deliveries as rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, and_, or_, select, update

from orchestrator.adapters.db.network_rows import Kind, Rows
from orchestrator.adapters.db.tables_network import (
    network_deliveries,
    network_messages,
    network_requests,
    network_threads,
)
from orchestrator.domain.network.collaboration import CollaborationRequest
from orchestrator.domain.network.identities import (
    Actor,
    AgentName,
    InstanceId,
    MessageId,
    NetworkName,
    RequestId,
    TaskId,
    ThreadId,
)
from orchestrator.domain.network.signing import signed_bytes
from orchestrator.domain.network.threads import Delivery, DeliveryState, Message, Thread
from orchestrator.ports.message_signer import MessageSigner

_THREADS = Kind(network_threads, Thread)
_MESSAGES = Kind(network_messages, Message)
_REQUESTS = Kind(network_requests, CollaborationRequest)
_DELIVERIES = Kind(network_deliveries, Delivery)
_UNDELIVERED = [DeliveryState.WAITING.value, DeliveryState.HELD.value]


class MailRows(Rows):
    """What `ports/network_mail.py` asks for, within one transaction."""

    def __init__(self, connection: Connection, network: NetworkName, signer: MessageSigner | None) -> None:
        super().__init__(connection, network)
        self._signer = signer

    def thread(self, thread_id: ThreadId) -> Thread | None:
        return self.one(_THREADS, network_threads.c.id == thread_id)

    def threads(self, limit: int) -> list[Thread]:
        table = network_threads.c
        query = self.select(_THREADS).order_by(table.created_at.desc(), table.id.desc()).limit(limit)
        return self.all(_THREADS, query)

    def messages_of_thread(self, thread_id: ThreadId) -> list[Message]:
        table = network_messages.c
        query = self.select(_MESSAGES, table.thread_id == thread_id)
        return self.all(_MESSAGES, query.order_by(table.sequence, table.created_at, table.id))

    def thread_length(self, thread_id: ThreadId) -> int:
        table = network_threads.c
        query = select(table.messages).where(table.network == self.network, table.id == thread_id)
        return self.connection.scalar(query) or 0

    def recent_messages(self, limit: int) -> list[Message]:
        table = network_messages.c
        query = self.select(_MESSAGES).order_by(table.created_at.desc(), table.id.desc())
        return self.all(_MESSAGES, query.limit(limit))

    def recent_traffic(self, limit: int) -> list[tuple[AgentName, AgentName]]:
        sent, copies = network_messages.c, network_deliveries.c
        same = and_(sent.network == copies.network, sent.id == copies.message_id)
        query = (
            select(sent.sender, copies.agent)
            .join_from(network_deliveries, network_messages, same)
            .where(copies.network == self.network)
            .order_by(copies.number.desc())
            .limit(limit)
        )
        return [(AgentName(row.sender), AgentName(row.agent)) for row in self.connection.execute(query)]

    def message(self, message_id: MessageId) -> Message | None:
        return self.one(_MESSAGES, network_messages.c.id == message_id)

    def message_of_call(self, instance_id: InstanceId, call_id: str) -> Message | None:
        table = network_messages.c
        return self.one(_MESSAGES, table.sender_instance == instance_id, table.call_id == call_id)

    def request(self, request_id: RequestId) -> CollaborationRequest | None:
        return self.one(_REQUESTS, network_requests.c.id == request_id)

    def request_of_call(self, instance_id: InstanceId, call_id: str) -> CollaborationRequest | None:
        table = network_requests.c
        return self.one(_REQUESTS, table.requester_instance == instance_id, table.call_id == call_id)

    def request_of_thread(self, thread_id: ThreadId) -> CollaborationRequest | None:
        return self.one(_REQUESTS, network_requests.c.thread_id == thread_id)

    def unanswered_requests(self, agent: AgentName, since: datetime) -> list[CollaborationRequest]:
        table = network_requests.c
        query = self.select(
            _REQUESTS,
            or_(table.requester == agent, table.target == agent),
            table.answered_at.is_(None),
            table.expires_at > since,
        )
        return self.all(_REQUESTS, query.order_by(table.created_at, table.id))

    def deliveries_of_message(self, message_id: MessageId) -> list[Delivery]:
        return self._deliveries(network_deliveries.c.message_id == message_id)

    def deliveries_of_task(self, task_id: TaskId) -> list[Delivery]:
        return self._deliveries(network_deliveries.c.task_id == task_id)

    def open_deliveries(self, actor: Actor, limit: int) -> list[Delivery]:
        table = network_deliveries.c
        held_for_this_call = and_(
            table.state == DeliveryState.HELD.value,
            table.held_by == actor.instance_id,
            table.held_call == actor.call_id,
        )
        return self._deliveries(
            table.agent == actor.agent,
            table.sender_instance != actor.instance_id,
            or_(table.instance_id.is_(None), table.instance_id == actor.instance_id),
            or_(table.state == DeliveryState.WAITING.value, held_for_this_call),
            limit=limit,
        )

    def undelivered(self, instance_id: InstanceId) -> list[Delivery]:
        table = network_deliveries.c
        return self._deliveries(
            table.state.in_(_UNDELIVERED), or_(table.instance_id == instance_id, table.held_by == instance_id)
        )

    def undelivered_to(self, agent: AgentName) -> list[Delivery]:
        table = network_deliveries.c
        return self._deliveries(table.agent == agent, table.state.in_(_UNDELIVERED))

    def put_thread(self, thread: Thread) -> None:
        self.put(_THREADS, thread)

    def add_message(self, message: Message) -> None:
        if self._signer is not None:
            message = self._signed(message, self._signer)
        self.put(_MESSAGES, message)

    def put_request(self, request: CollaborationRequest) -> None:
        self.put(_REQUESTS, request)

    def put_deliveries(self, deliveries: Sequence[Delivery]) -> None:
        for delivery in deliveries:
            self.put(_DELIVERIES, delivery)

    def _signed(self, message: Message, signer: MessageSigner) -> Message:
        """The thread's next message. Counted in the thread, so that a cut end shows."""
        table = network_threads.c
        same = and_(table.network == self.network, table.id == message.thread_id)
        count = update(network_threads).where(same).values(messages=table.messages + 1)
        number = self.connection.scalar(count.returning(table.messages)) or 0
        message = replace(message, sequence=number, key_id=signer.key_id)
        return replace(message, signature=signer.sign(signed_bytes(self.network, message)))

    def _deliveries(self, *conditions: ColumnElement[bool], limit: int | None = None) -> list[Delivery]:
        query = self.select(_DELIVERIES, *conditions).order_by(network_deliveries.c.number).limit(limit)
        return self.all(_DELIVERIES, query)

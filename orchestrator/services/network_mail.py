"""Messages of a network: sent once, kept, and handed out until they are proven received."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from orchestrator.domain.network.identities import (
    Actor,
    DeliveryId,
    MessageId,
    TaskId,
    ThreadId,
)
from orchestrator.domain.network.refusals import Refusal, not_found
from orchestrator.domain.network.resources import resource_key
from orchestrator.domain.network.routing import members_of
from orchestrator.domain.network.tasks import Target
from orchestrator.domain.network.threads import (
    Delivery,
    Message,
    MessageKind,
    Participant,
    Thread,
    others_in,
    spoken_in,
    with_live,
)
from orchestrator.ports.ids import Ids
from orchestrator.ports.network import NetworkReader, NetworkStore, NetworkTransaction
from orchestrator.services.network_members import Refused, accepted, acting_member, live_ids
from orchestrator.services.network_targets import target_of
from orchestrator.services.response_waits import ResponseWaits
from tool_registry.clock import Clock


@dataclass(frozen=True, slots=True)
class Sent:
    """A stored message and its copies; each copy says how far it has come."""

    message: Message
    deliveries: list[Delivery]


@dataclass(frozen=True, slots=True)
class Ask:
    """A question, and whom it is for."""

    body: str
    to_agent: str | None = None
    to_instance: str | None = None
    thread_id: str | None = None
    subject: str | None = None
    task_id: str | None = None
    resource: str | None = None


class NetworkMail:
    """Threads and inboxes.

    Args:
        store: where the network is kept.
        clock: the time that is written down.
        ids: names new threads, messages and copies.
        waits: calls that wait for a reply.
    """

    def __init__(self, store: NetworkStore, clock: Clock, ids: Ids, waits: ResponseWaits) -> None:
        self._store = store
        self._waits = waits
        self._clock = clock
        self._ids = ids

    async def ask(self, actor: Actor, ask: Ask) -> Sent:
        """Send an ask to somebody, or on to a thread's others; the same call again sends nothing new.

        Raises:
            Refused: `no_recipient` with neither a recipient nor a thread; `not_found` in this network for any
                of them; `not_a_participant`, `target_ended`, `self_request`, `invalid_resource`.
        """
        resource = None if ask.resource is None else accepted(resource_key(ask.resource))

        ask = replace(ask, resource=resource)
        return await self._store.change(actor.network, lambda tx: self.send_ask(tx, actor, ask))

    def send_ask(self, tx: NetworkTransaction, actor: Actor, ask: Ask) -> Sent:
        """`ask` within a transaction of somebody else's; the resource is canonical."""
        acting_member(tx, actor)
        there = _sent_before(tx, actor)
        if there is not None:
            return there
        target = target_of(tx, actor, ask.to_agent, ask.to_instance)
        if ask.task_id is not None and tx.task(TaskId(ask.task_id)) is None:
            raise Refused(not_found("task", ask.task_id))
        thread = self._thread(tx, actor, ask, target)
        recipients = _recipients(tx, actor, target) if target != Target() else others_in(thread, actor)
        message = _about(self._message(actor, thread, MessageKind.ASK, ask.body), ask)
        return self._send(tx, actor, thread, message, recipients)

    async def reply(self, actor: Actor, thread_id: str, body: str) -> Sent:
        """Answer everybody else in a thread; the same call again sends nothing new.

        Raises:
            Refused: `not_found`, `not_a_participant`, `no_recipient` when nobody else is in it.
        """

        def answer(tx: NetworkTransaction) -> Sent:
            acting_member(tx, actor)
            there = _sent_before(tx, actor)
            if there is not None:
                return there
            thread = _known_thread(tx, thread_id)
            accepted(spoken_in(thread, actor, ()))
            recipients = others_in(thread, actor)
            if not recipients:
                raise Refused(Refusal("no_recipient", f"nobody else is in thread {thread_id!r}"))
            message = self._message(actor, thread, MessageKind.REPLY, body)
            sent = self._send(tx, actor, thread, message, recipients)
            return self._answering(tx, actor, sent)

        sent = await self._store.change(actor.network, answer)
        self._waits.wake(sent.message.thread_id)
        return sent

    def _answering(self, tx: NetworkTransaction, actor: Actor, sent: Sent) -> Sent:
        """The target's first reply is the response; the call that waits for it has it, and no inbox."""
        message = sent.message
        request = tx.request_of_thread(message.thread_id)
        if request is None or not request.answerable_by(actor, message.created_at):
            return sent
        tx.put_request(request.answered(message.id, message.created_at))
        if not self._waits.has(message.thread_id):
            return sent
        waiting = Actor(actor.network, request.requester, request.requester_instance, request.call_id)
        copies = [one.handed_to(waiting) if one.open_to(waiting) else one for one in sent.deliveries]
        tx.put_deliveries(copies)
        return Sent(message, copies)

    def _thread(self, tx: NetworkReader, actor: Actor, ask: Ask, target: Target) -> Thread:
        if ask.thread_id is not None:
            return _known_thread(tx, ask.thread_id)
        if target == Target():
            raise Refused(
                Refusal("no_recipient", "say whom to ask: toAgent, toInstance, or the threadId to go on in")
            )
        me = Participant(actor.agent, actor.instance_id)
        return Thread(ThreadId(self._ids.new()), (ask.subject or "").strip(), (me,), self._clock.now())

    def _message(self, actor: Actor, thread: Thread, kind: MessageKind, body: str) -> Message:
        return Message(
            id=MessageId(self._ids.new()),
            thread_id=thread.id,
            kind=kind,
            sender=actor.agent,
            sender_instance=actor.instance_id,
            call_id=actor.call_id,
            body=body,
            subject=thread.subject,
            task_id=None,
            resource=None,
            created_at=self._clock.now(),
        )

    def _send(
        self,
        tx: NetworkTransaction,
        actor: Actor,
        thread: Thread,
        message: Message,
        recipients: Sequence[Participant],
    ) -> Sent:
        tx.put_thread(accepted(spoken_in(thread, actor, recipients)))
        deliveries = [self._copy(message, recipient, message.created_at) for recipient in recipients]
        tx.add_message(replace(message, recipients=tuple(recipients)))
        tx.put_deliveries(deliveries)
        return Sent(message, deliveries)

    def _copy(self, message: Message, recipient: Participant, now: datetime) -> Delivery:
        return Delivery(
            id=DeliveryId(self._ids.new()),
            agent=recipient.agent,
            instance_id=recipient.instance_id,
            sender_instance=message.sender_instance,
            message_id=message.id,
            task_id=None,
            created_at=now,
        )


def _about(message: Message, ask: Ask) -> Message:
    task_id = None if ask.task_id is None else TaskId(ask.task_id)
    subject = (ask.subject or "").strip() or message.subject
    return replace(message, subject=subject, task_id=task_id, resource=ask.resource)


def _sent_before(reader: NetworkReader, actor: Actor) -> Sent | None:
    message = reader.message_of_call(actor.instance_id, actor.call_id)
    return None if message is None else Sent(message, reader.deliveries_of_message(message.id))


def _known_thread(reader: NetworkReader, thread_id: str) -> Thread:
    thread = reader.thread(ThreadId(thread_id))
    if thread is None:
        raise Refused(not_found("thread", thread_id))
    return with_live(thread, live_ids(reader))


def _recipients(reader: NetworkReader, actor: Actor, target: Target) -> list[Participant]:
    if target.group is None:
        assert target.agent is not None  # a target that is no group has an agent
        return [Participant(target.agent, target.instance_id)]
    members = members_of(reader.definitions(), target.group)
    recipients = [Participant(name) for name in members if name != actor.agent]
    if not recipients:
        raise Refused(Refusal("no_recipient", f"group {target.group!r} has no other members"))
    return recipients

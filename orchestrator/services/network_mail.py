"""Messages of a network: sent once, kept, and handed out until they are proven received."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from orchestrator.domain.network.identities import Actor, DeliveryId, InstanceId, MessageId, TaskId, ThreadId
from orchestrator.domain.network.refusals import Refusal, not_found
from orchestrator.domain.network.resources import resource_key
from orchestrator.domain.network.tasks import Target, Task
from orchestrator.domain.network.threads import (
    Delivery,
    Message,
    MessageKind,
    Participant,
    Thread,
    is_mcp_call,
    others_in,
    proves_receipt,
    spoken_in,
    with_live,
)
from orchestrator.ports.ids import Ids
from orchestrator.ports.network import NetworkReader, NetworkStore, NetworkTransaction
from orchestrator.services.network_members import Refused, accepted, acting_member, live_ids
from orchestrator.services.network_targets import members_of, target_of
from tool_registry.clock import Clock

INBOX_ITEMS = 50
# Below what a model is shown of one result, so that no message is cut out of the middle.
INBOX_BYTES = 48 * 1024


@dataclass(frozen=True, slots=True)
class Sent:
    """A stored message and its copies; each copy says how far it has come."""

    message: Message
    deliveries: list[Delivery]


@dataclass(frozen=True, slots=True)
class InboxItem:
    """One delivery with what it delivers: a message, or an offered task."""

    delivery: Delivery
    message: Message | None = None
    task: Task | None = None

    @property
    def size_bytes(self) -> int:
        """How much of a result it takes, about."""
        texts = [self.message.body] if self.message else []
        texts += [self.task.objective, *self.task.acceptance_criteria] if self.task else []
        return sum(len(text.encode()) for text in texts) + 512


@dataclass(frozen=True, slots=True)
class Inbox:
    """What a call was handed, oldest first; `more` is waiting behind it."""

    items: list[InboxItem]
    more: bool


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
    """

    def __init__(self, store: NetworkStore, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids

    async def ask(self, actor: Actor, ask: Ask) -> Sent:
        """Send an ask to somebody, or on to a thread's others; the same call again sends nothing new.

        Raises:
            Refused: `no_recipient` with neither a recipient nor a thread; `not_found` in this network for any
                of them; `not_a_participant`, `target_ended`, `self_request`, `invalid_resource`.
        """
        resource = None if ask.resource is None else accepted(resource_key(ask.resource))

        def send(tx: NetworkTransaction) -> Sent:
            acting_member(tx, actor)
            there = _sent_before(tx, actor)
            if there is not None:
                return there
            target = target_of(tx, actor, ask.to_agent, ask.to_instance)
            if ask.task_id is not None and tx.task(TaskId(ask.task_id)) is None:
                raise Refused(not_found("task", ask.task_id))
            thread = self._thread(tx, actor, ask, target)
            recipients = _recipients(tx, actor, target) if target != Target() else others_in(thread, actor)
            message = self._message(actor, thread, MessageKind.ASK, ask.body)
            message = _about(message, ask, resource)
            return self._send(tx, actor, thread, message, recipients)

        return await self._store.change(actor.network, send)

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
            return self._send(tx, actor, thread, message, recipients)

        return await self._store.change(actor.network, answer)

    async def inbox(self, actor: Actor) -> Inbox:
        """Hand out what waits for the actor, in order.

        A call of an MCP session proves that its instance received what the session's earlier calls were
        handed: nothing else does there. Other calls prove nothing, as two of them may stand in one turn of
        a model that has seen neither result. The same call again is handed the same.

        Raises:
            Refused: `not_a_member`.
        """

        def hand_out(tx: NetworkTransaction) -> Inbox:
            acting_member(tx, actor)
            now = self._clock.now()
            held = tx.undelivered(actor.instance_id)
            tx.put_deliveries(
                [
                    one.delivered(now)
                    for one in held
                    if one.held_by == actor.instance_id and proves_receipt(actor.call_id, one.held_call)
                ]
            )
            inbox = _bounded(_open_items(tx, actor))
            items = [
                InboxItem(item.delivery.handed_to(actor), item.message, item.task) for item in inbox.items
            ]
            tx.put_deliveries([item.delivery for item in items])
            return Inbox(items, inbox.more)

        return await self._store.change(actor.network, hand_out)

    async def acknowledge_inbox(self, instance_id: str, call_ids: Collection[str]) -> None:
        """The model was shown the results of these inbox calls: what they were handed is delivered.

        What other calls were handed, but for those of MCP sessions, it was not shown: that waits again.
        Unknown instances and calls, and calls that were acknowledged before, change nothing.
        """
        network = await self._store.network_of(InstanceId(instance_id))
        if network is None:
            return

        def prove(tx: NetworkTransaction) -> None:
            now = self._clock.now()
            held = [one for one in tx.undelivered(InstanceId(instance_id)) if one.held_by == instance_id]
            tx.put_deliveries(
                [
                    one.delivered(now) if one.held_call in call_ids else one.returned()
                    for one in held
                    if one.held_call in call_ids or not is_mcp_call(one.held_call)
                ]
            )

        await self._store.change(network, prove)

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
        tx.add_message(message)
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


def _about(message: Message, ask: Ask, resource: str | None) -> Message:
    task_id = None if ask.task_id is None else TaskId(ask.task_id)
    subject = (ask.subject or "").strip() or message.subject
    return replace(message, subject=subject, task_id=task_id, resource=resource)


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


def _open_items(tx: NetworkTransaction, actor: Actor) -> list[InboxItem]:
    """The first items for an actor, one more than an inbox shows; offers that lapsed are withdrawn."""
    while True:
        items = [_item(tx, delivery) for delivery in tx.open_deliveries(actor, INBOX_ITEMS + 1)]
        stale = [
            item.delivery
            for item in items
            if item.task is not None and actor.instance_id not in item.task.offered_to
        ]
        if not stale:
            return items
        tx.put_deliveries([delivery.withdrawn() for delivery in stale])


def _item(reader: NetworkReader, delivery: Delivery) -> InboxItem:
    if delivery.message_id is not None:
        return InboxItem(delivery, message=reader.message(delivery.message_id))
    assert delivery.task_id is not None  # what is no message is an offer
    return InboxItem(delivery, task=reader.task(delivery.task_id))


def _bounded(items: Sequence[InboxItem]) -> Inbox:
    shown: list[InboxItem] = []
    room = INBOX_BYTES
    for item in items[:INBOX_ITEMS]:
        room -= item.size_bytes
        if shown and room < 0:
            break
        shown.append(item)
    return Inbox(shown, more=len(shown) < len(items))

"""Inboxes of a network: what was sent is handed out until it is proven received."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from orchestrator.domain.network.identities import Actor, InstanceId, NetworkName
from orchestrator.domain.network.tasks import Task
from orchestrator.domain.network.threads import Delivery, Message, is_mcp_call, proves_receipt
from orchestrator.ports.network import NetworkReader, NetworkStore, NetworkTransaction
from orchestrator.services.network_members import acting_member
from tool_registry.clock import Clock

INBOX_ITEMS = 50
# Names no call of a worker's: those have an attempt and a colon.
PUSH_CALL = "push"
# Below what a model is shown of one result, so that no message is cut out of the middle.
INBOX_BYTES = 48 * 1024


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


class NetworkInbox:
    """Deliveries, pulled by an inbox call or pushed to a worker between two steps.

    Args:
        store: where the network is kept.
        clock: the time that is written down.
    """

    def __init__(self, store: NetworkStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def fetch(self, actor: Actor) -> Inbox:
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
            if is_mcp_call(actor.call_id):
                # No loop takes what was pushed to a job whose model is in an MCP session.
                pushed = [
                    one for one in held if (one.held_by, one.held_call) == (actor.instance_id, PUSH_CALL)
                ]
                tx.put_deliveries([one.returned() for one in pushed])
            return _handed_out(tx, actor)

        return await self._store.change(actor.network, hand_out)

    async def acknowledge(self, instance_id: str, call_ids: Collection[str]) -> None:
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
                    if one.held_call in call_ids
                    or not (one.held_call == PUSH_CALL or is_mcp_call(one.held_call))
                ]
            )

        await self._store.change(network, prove)

    async def push(self, instance_id: str) -> list[InboxItem]:
        """Hold what waits for an instance, for its worker to take; the same again until acknowledged.

        An ended or unknown instance gets nothing.
        """
        network = await self._store.network_of(InstanceId(instance_id))
        if network is None:
            return []

        def hand_out(tx: NetworkTransaction) -> list[InboxItem]:
            actor = _pushed_to(tx, network, instance_id)
            return [] if actor is None else _handed_out(tx, actor).items

        # Most looks find nothing, and then keep nobody from writing.
        if not await self._store.read(network, lambda reader: _waits(reader, network, instance_id)):
            return []
        return await self._store.change(network, hand_out)

    async def acknowledge_push(self, instance_id: str, delivery_ids: Collection[str]) -> None:
        """The worker took these pushed deliveries; unknown ones, and those that it does not hold, stay."""
        network = await self._store.network_of(InstanceId(instance_id))
        if network is None:
            return

        def prove(tx: NetworkTransaction) -> None:
            now = self._clock.now()
            held = (InstanceId(instance_id), PUSH_CALL)
            tx.put_deliveries(
                [
                    one.delivered(now)
                    for one in tx.undelivered(InstanceId(instance_id))
                    if one.id in delivery_ids and (one.held_by, one.held_call) == held
                ]
            )

        await self._store.change(network, prove)


def _handed_out(tx: NetworkTransaction, actor: Actor) -> Inbox:
    inbox = _bounded(_open_items(tx, actor))
    items = [InboxItem(one.delivery.handed_to(actor), one.message, one.task) for one in inbox.items]
    tx.put_deliveries([one.delivery for one in items])
    return Inbox(items, inbox.more)


def _pushed_to(reader: NetworkReader, network: NetworkName, instance_id: str) -> Actor | None:
    instance = reader.instance(InstanceId(instance_id))
    if instance is None or not instance.live:
        return None
    return Actor(network, instance.agent, instance.id, PUSH_CALL)


def _waits(reader: NetworkReader, network: NetworkName, instance_id: str) -> bool:
    actor = _pushed_to(reader, network, instance_id)
    return actor is not None and bool(reader.open_deliveries(actor, 1))


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

"""Humans as agents: an operator reads and speaks for them. What they are asked stays until they answer it."""

from __future__ import annotations

from collections.abc import Callable, Collection

from orchestrator.domain.network.agents import AgentKind
from orchestrator.domain.network.identities import Actor, NetworkName
from orchestrator.domain.network.refusals import Refusal
from orchestrator.domain.network.task_states import TaskState
from orchestrator.domain.network.tasks import Task
from orchestrator.domain.network.threads import Delivery, Message, MessageKind
from orchestrator.ports.ids import Ids
from orchestrator.ports.network import NetworkReader, NetworkStore, NetworkTransaction
from orchestrator.services.agent_records import known_agent
from orchestrator.services.network import NetworkService
from orchestrator.services.network_inbox import InboxItem
from orchestrator.services.network_mail import Ask, Sent
from orchestrator.services.network_members import Refused, agent_name, network_name
from orchestrator.services.network_tasks import Delegation
from tool_registry.clock import Clock


class NetworkPeople:
    """What an operator does in the name of a human agent.

    Args:
        store: where networks are kept.
        service: does what any member does.
        clock: the time that is written down.
        ids: names each call.
        changed: called after what may have left something for others.

    Raises:
        Refused: from every method: `not_found`, `not_a_human`, and what the rule says that was asked.
    """

    def __init__(
        self,
        store: NetworkStore,
        service: NetworkService,
        clock: Clock,
        ids: Ids,
        changed: Callable[[], None],
    ) -> None:
        self._store = store
        self._service = service
        self._clock = clock
        self._ids = ids
        self._changed = changed

    async def inbox(self, network: str, name: str) -> list[InboxItem]:
        """What waits for a human, oldest first: asks until they are answered, the rest until `seen`."""
        actor = await self._actor(network, name)
        return await self._store.read(actor.network, lambda reader: _waiting(reader, actor))

    async def seen(self, network: str, name: str, delivery_ids: Collection[str]) -> None:
        """The human was shown these; what wants an answer stays."""
        actor = await self._actor(network, name)

        def mark(tx: NetworkTransaction) -> None:
            shown = [one for one in _waiting(tx, actor) if one.delivery.id in delivery_ids]
            self._deliver(tx, [one.delivery for one in shown if not _wants_answer(one)])

        await self._store.change(actor.network, mark)

    async def ask(self, network: str, name: str, ask: Ask) -> Sent:
        """Ask another agent, or on in a thread."""
        actor = await self._actor(network, name)
        sent = await self._service.mail.ask(actor, ask)
        self._changed()
        return sent

    async def reply(self, network: str, name: str, thread_id: str, body: str) -> Sent:
        """Answer in a thread; what the human was asked there is answered by it."""
        actor = await self._actor(network, name)
        sent = await self._service.mail.reply(actor, thread_id, body)

        def answered(tx: NetworkTransaction) -> None:
            mine = _waiting(tx, actor)
            self._deliver(
                tx, [one.delivery for one in mine if one.message and one.message.thread_id == thread_id]
            )

        await self._store.change(actor.network, answered)
        self._changed()
        return sent

    async def delegate(self, network: str, name: str, wanted: Delegation) -> Task:
        """Give somebody a task."""
        task = await self._service.tasks.delegate(await self._actor(network, name), wanted)
        self._changed()
        return task

    async def move(self, network: str, name: str, task_id: str, status: TaskState, reason: str) -> Task:
        """Take, decline, do or end a task; who completes one that they only accepted worked on it."""
        actor = await self._actor(network, name)
        record = await self._service.tasks.get(actor, task_id)
        if (record.task.state, status) == (TaskState.ACCEPTED, TaskState.COMPLETED):
            between = await self._actor(network, name)
            await self._service.tasks.update(between, task_id, TaskState.WORKING, "")
        task = await self._service.tasks.update(actor, task_id, status, reason)

        def decided(tx: NetworkTransaction) -> None:
            self._deliver(
                tx,
                [
                    one
                    for one in tx.undelivered_to(actor.agent)
                    if one.task_id == task_id and not one.message_id
                ],
            )

        await self._store.change(actor.network, decided)
        self._changed()
        return task

    def _deliver(self, tx: NetworkTransaction, copies: Collection[Delivery]) -> None:
        now = self._clock.now()
        tx.put_deliveries([one.delivered(now) for one in copies])

    async def _actor(self, network: str, name: str) -> Actor:
        where, wanted = network_name(network), agent_name(name)

        def find(reader: NetworkReader) -> Actor:
            agent = known_agent(reader, wanted)
            if agent.kind is not AgentKind.HUMAN:
                raise Refused(
                    Refusal(
                        "not_a_human",
                        f"{wanted!r} is a {agent.kind.value} and speaks for itself; name a human agent",
                    )
                )
            place = next(one for one in reader.live_instances() if one.agent == wanted and one.person)
            return Actor(NetworkName(where), wanted, place.id, self._ids.new())

        return await self._store.read(where, find)


def _waiting(reader: NetworkReader, actor: Actor) -> list[InboxItem]:
    items: list[InboxItem] = []
    for copy in reader.undelivered_to(actor.agent):
        if copy.sender_instance == actor.instance_id:
            continue
        if copy.message_id is not None:
            items.append(InboxItem(copy, message=reader.message(copy.message_id)))
            continue
        task = None if copy.task_id is None else reader.task(copy.task_id)
        if task is not None and actor.instance_id in task.offered_to:
            items.append(InboxItem(copy, task=task))
    return items


def _wants_answer(item: InboxItem) -> bool:
    message: Message | None = item.message
    return message is None or message.kind is MessageKind.ASK

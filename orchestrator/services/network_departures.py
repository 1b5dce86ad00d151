"""What an instance, or an agent, leaves behind when it goes: nothing is lost, and those who wait are told."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from orchestrator.domain.network.agents import InstanceState
from orchestrator.domain.network.identities import AgentName, DeliveryId, InstanceId, MessageId
from orchestrator.domain.network.tasks import agent_removed, instance_ended
from orchestrator.domain.network.threads import Delivery, Message, MessageKind, Participant
from orchestrator.ports.ids import Ids
from orchestrator.ports.network import NetworkTransaction
from orchestrator.services.network_notes import tell_other_side


def end_instance(tx: NetworkTransaction, ids: Ids, instance_id: InstanceId, why: str, now: datetime) -> None:
    """An instance ends: its claims are free, its work goes back, its undelivered mail is its agent's."""
    instance = tx.instance(instance_id)
    if instance is None or not instance.live:
        return
    tx.put_instance(replace(instance, state=InstanceState.ENDED, ended_at=now, ended_reason=why))
    tx.end_claims(instance_id, now)
    for task in [*tx.offered_tasks(), *tx.tasks_held_by(instance_id)]:
        change = instance_ended(task, instance_id, why, now)
        if change is not None:
            tx.put_task(change)
            tell_other_side(tx, ids, change.task, change.entry, now)
    tx.put_deliveries([one.orphaned() for one in tx.undelivered(instance_id)])


def end_work_of(tx: NetworkTransaction, ids: Ids, agent: AgentName, why: str, now: datetime) -> None:
    """An agent goes: tasks for it are cancelled, and who asked it hears that no answer comes."""
    for task in tx.open_tasks():
        change = agent_removed(task, agent, why, now)
        if change is not None:
            tx.put_task(change)
            tell_other_side(tx, ids, change.task, change.entry, now)
    for copy in tx.undelivered_to(agent):
        tx.put_deliveries([copy.withdrawn()])
        message = None if copy.message_id is None else tx.message(copy.message_id)
        if message is not None and message.kind is MessageKind.ASK:
            _tell_asker(tx, ids, copy, message, why, now)


def _tell_asker(
    tx: NetworkTransaction, ids: Ids, copy: Delivery, asked: Message, why: str, now: datetime
) -> None:
    asker = tx.instance(asked.sender_instance)
    to = asked.sender_instance if asker is not None and asker.live else None
    note = replace(
        asked,
        id=MessageId(ids.new()),
        kind=MessageKind.NOTICE,
        sender=copy.agent,
        sender_instance=InstanceId(""),
        call_id=f"removed:{copy.id}",
        body=f"{why}: it will not answer.",
        created_at=now,
        recipients=(Participant(asked.sender, to),),
    )
    tx.add_message(note)
    back = Delivery(DeliveryId(ids.new()), asked.sender, to, note.sender_instance, note.id, None, now)
    tx.put_deliveries([back])

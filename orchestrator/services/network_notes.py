"""What a task's other side is told when it moves, without anybody's asking."""

from __future__ import annotations

from datetime import datetime

from orchestrator.domain.network.identities import AgentName, DeliveryId, InstanceId, MessageId, ThreadId
from orchestrator.domain.network.task_states import TaskState
from orchestrator.domain.network.tasks import HistoryEntry, Task
from orchestrator.domain.network.threads import Delivery, Message, MessageKind, Participant, Thread
from orchestrator.ports.ids import Ids
from orchestrator.ports.network import NetworkTransaction

# What somebody waits for: taking it up and going on with it are in the history.
_TOLD = (TaskState.BLOCKED, TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELLED)


def tell_other_side(tx: NetworkTransaction, ids: Ids, task: Task, entry: HistoryEntry, now: datetime) -> None:
    """Tell a task's creator what became of it, or its assignee that it was cancelled.

    Args:
        tx: the transaction that moved it.
        ids: names the message and its copy.
        task: as it is now.
        entry: the move; the network's own moves are told in the name of the assignee.
        now: the time.
    """
    creator, assignee = _place(tx, task.creator, task.creator_instance), None
    if task.assignee is not None and task.assignee_instance is not None:
        assignee = _place(tx, task.assignee, task.assignee_instance)
    by_creator = entry.agent == task.creator and entry.instance_id != task.assignee_instance
    to = assignee if by_creator else creator
    if task.state not in _TOLD or to is None:
        return
    sender = AgentName(entry.agent) if entry.agent else task.assignee or task.target.agent or task.creator
    # Nobody gets a message of its own: with no assignee the network's word has no instance's name.
    sender_instance = InstanceId(entry.instance_id) or task.assignee_instance or InstanceId("")
    thread = tx.thread(ThreadId(task.id)) or Thread(ThreadId(task.id), task.title, (creator,), now)
    places = (*thread.participants, creator, Participant(sender, sender_instance), to)
    tx.put_thread(Thread(thread.id, thread.subject, tuple(dict.fromkeys(places)), thread.created_at))
    message = Message(
        id=MessageId(ids.new()),
        thread_id=thread.id,
        kind=MessageKind.NOTICE if by_creator else MessageKind.STATUS,
        sender=sender,
        sender_instance=sender_instance,
        call_id=entry.call_id or f"task:{task.id}:{task.attempt}",
        body=f"The task is {task.state.value}" + (f": {entry.reason}" if entry.reason else "."),
        subject=task.title,
        task_id=task.id,
        resource=task.resource,
        created_at=now,
        recipients=(to,),
    )
    tx.add_message(message)
    copy = Delivery(DeliveryId(ids.new()), to.agent, to.instance_id, sender_instance, message.id, None, now)
    tx.put_deliveries([copy])


def _place(tx: NetworkTransaction, agent: AgentName, instance_id: InstanceId) -> Participant:
    """An instance, or its agent when it has ended."""
    instance = tx.instance(instance_id)
    return Participant(agent, instance_id if instance is not None and instance.live else None)

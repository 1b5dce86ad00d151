"""Offers kept in step with who is there: after every event that changes it, and by the sweep."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from orchestrator.domain.network.agents import Instance
from orchestrator.domain.network.identities import DeliveryId, InstanceId
from orchestrator.domain.network.offers import ASKED_AGAIN, need_of, settled
from orchestrator.domain.network.routing import route
from orchestrator.domain.network.task_states import TaskState
from orchestrator.domain.network.tasks import Task
from orchestrator.domain.network.threads import Delivery, DeliveryState
from orchestrator.ports.ids import Ids
from orchestrator.ports.network import NetworkReader, NetworkTransaction

_UNASSIGNED = (TaskState.PENDING, TaskState.OFFERED)


def offer_waiting(tx: NetworkTransaction, ids: Ids, now: datetime) -> list[Task]:
    """Look at every task that nobody has accepted.

    Returns:
        Those that changed.
    """
    waiting = unassigned(tx)
    if not waiting:
        return []
    definitions, instances = tx.definitions(), tx.live_instances()
    changed: list[Task] = []
    for task in waiting:
        found = route(need_of(task), definitions, instances, now)
        told = _told(tx, task)
        change = settled(task, found, {one: at for one, (_, at) in told.items()}, now)
        if change is None:
            continue
        tx.put_task(change)
        to = [one for one in found.instances if one.id in change.task.offered_to]
        tx.put_deliveries([offer_of(ids, change.task, one, now) for one in to if _is_new(told, one.id, now)])
        changed.append(change.task)
    return changed


def unassigned(reader: NetworkReader) -> list[Task]:
    """Tasks that nobody has accepted, oldest first."""
    return [task for task in reader.open_tasks() if task.state in _UNASSIGNED]


def offer_of(ids: Ids, task: Task, instance: Instance, now: datetime) -> Delivery:
    """An offer on its way to an instance."""
    return Delivery(
        id=DeliveryId(ids.new()),
        agent=instance.agent,
        instance_id=instance.id,
        sender_instance=task.creator_instance,
        message_id=None,
        task_id=task.id,
        created_at=now,
    )


_Told = Mapping[InstanceId, tuple[bool, datetime | None]]


def _told(reader: NetworkReader, task: Task) -> _Told:
    """Each instance's newest offer: whether it is still under way, and when it was received."""
    return {
        one.instance_id: (one.state in {DeliveryState.WAITING, DeliveryState.HELD}, one.delivered_at)
        for one in reader.deliveries_of_task(task.id)
        if one.instance_id is not None
    }


def _is_new(told: _Told, instance_id: InstanceId, now: datetime) -> bool:
    """Whether an offer is to be sent: none is under way, and none was received a short while ago."""
    under_way, received_at = told.get(instance_id, (False, None))
    since = timedelta.max if received_at is None else now - received_at
    return not under_way and since >= ASKED_AGAIN

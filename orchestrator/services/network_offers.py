"""Offers kept in step with who is there: after every event that changes it, and by the sweep."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from orchestrator.domain.network.agents import AgentDefinition, Instance
from orchestrator.domain.network.identities import DeliveryId, InstanceId
from orchestrator.domain.network.offers import ASKED_AGAIN, need_of, settled
from orchestrator.domain.network.routing import Route, route, served_keys
from orchestrator.domain.network.tasks import Task
from orchestrator.domain.network.threads import Delivery, DeliveryState
from orchestrator.ports.ids import Ids
from orchestrator.ports.network import NetworkReader, NetworkTransaction

# An agent decides about these before it gets more: the tasks behind them cost nothing until then.
OPEN_OFFERS = 50


def offer_waiting(tx: NetworkTransaction, ids: Ids, now: datetime) -> list[Task]:
    """Look at every task that somebody could take now, and at every offer that is under way.

    Returns:
        Those that changed.
    """
    definitions, instances = tx.definitions(), tx.live_instances()
    changed: list[Task] = []
    for task in movable(tx, now):
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


def movable(reader: NetworkReader, now: datetime) -> list[Task]:
    """Tasks that are offered, and pending ones that an available agent with room for offers may take.

    What waits for others is not even read, however much it is.
    """
    offered = reader.offered_tasks()
    definitions, instances = reader.definitions(), reader.live_instances()
    found = {task.id: task for task in offered}
    for definition in definitions:
        own = [one for one in instances if one.agent == definition.name]
        able = {one.id for one in own if one.available(now)}
        if able:
            open_offers = sum(1 for task in offered if able.intersection(task.offered_to))
            for task in _pending_for(reader, definition, own, able, OPEN_OFFERS - open_offers):
                found[task.id] = task
    return sorted(found.values(), key=lambda task: (task.created_at, task.id))


def with_room(reader: NetworkReader, found: Route) -> Route:
    """The route without agents that have enough offers to decide about."""
    if not found.instances:
        return found
    offered = reader.offered_tasks()
    busy = {
        one.agent
        for one in found.instances
        if sum(one.id in task.offered_to for task in offered) >= OPEN_OFFERS
    }
    able = tuple(one for one in found.instances if one.agent not in busy)
    why = "" if able else f"{', '.join(sorted(busy))} has {OPEN_OFFERS} offers to decide about first"
    return replace(found, instances=able, why_none=why)


def _pending_for(
    reader: NetworkReader,
    definition: AgentDefinition,
    own: Sequence[Instance],
    able: Collection[InstanceId],
    most: int,
) -> list[Task]:
    """The oldest pending tasks that one of an agent's available instances may be offered."""
    keys = served_keys(definition, own)
    found: list[Task] = []
    skip = 0
    while most > len(found) and (page := reader.pending_tasks(keys, OPEN_OFFERS, skip=skip)):
        skip += len(page)
        found += [task for task in page if _may_have(task, definition, able)]
    return found[: max(0, most)]


def _may_have(task: Task, definition: AgentDefinition, able: Collection[InstanceId]) -> bool:
    need = need_of(task)
    if definition.name in need.not_agents:
        return False
    wanted = {task.target.instance_id} & set(able) if task.target.instance_id is not None else set(able)
    return bool(wanted - set(need.not_instances))


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

"""What an instance is at work on, and for whom."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from orchestrator.domain.network.chains import Lineage
from orchestrator.domain.network.collaboration import KEPT
from orchestrator.domain.network.identities import Actor, TaskId
from orchestrator.ports.network import NetworkReader


def held_tasks(reader: NetworkReader, actor: Actor) -> list[tuple[TaskId, Lineage]]:
    """The tasks that the actor's instance has accepted and not finished."""
    return [(task.id, task.lineage) for task in reader.tasks_held_by(actor.instance_id)]


def roots_of(reader: NetworkReader, held: Collection[TaskId]) -> dict[TaskId, int]:
    """The tasks that this work goes back to, themselves part of none, and how many were made for each."""
    seen: set[TaskId] = set()
    roots: dict[TaskId, int] = {}
    waiting = list(held)
    while waiting:
        task_id = waiting.pop()
        task = None if task_id in seen else reader.task(task_id)
        seen.add(task_id)
        if task is None:
            continue
        waiting.extend(task.lineage.parents)
        if not task.lineage.parents:
            roots[task.id] = task.tasks_below
    return roots


def held_requests(reader: NetworkReader, actor: Actor, now: datetime) -> list[Lineage]:
    """Of the requests for collaboration that the actor's instance was given and can still answer."""
    return [
        request.lineage
        for request in reader.unanswered_requests(actor.agent, now - KEPT)
        if request.target == actor.agent
        and any(one.held_by == actor.instance_id for one in reader.deliveries_of_message(request.message_id))
    ]

"""Offers of a task: to whom, for how long, and what a look at them changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from orchestrator.domain.network.identities import InstanceId
from orchestrator.domain.network.routing import Need, Route
from orchestrator.domain.network.task_states import TaskState
from orchestrator.domain.network.tasks import HistoryEntry, Task, TaskChange

# Counted from the proof of receipt: who is busy with a long command has not passed an offer by.
OFFER_LIFE = timedelta(seconds=60)
# Who passed it by is asked again, not at every look.
ASKED_AGAIN = timedelta(minutes=10)


def need_of(task: Task) -> Need:
    """What an unassigned task looks for."""
    return Need(
        task.target,
        task.resource,
        not_instances=(task.creator_instance, *task.declined_by),
        not_agents=frozenset(task.lineage.agents[:-1]),
    )


def settled(
    task: Task, route: Route, told: Mapping[InstanceId, datetime | None], now: datetime
) -> TaskChange | None:
    """Offer a pending or offered task to exactly those that can take it now.

    Args:
        task: pending or offered.
        route: who can take it.
        told: instances that were sent an offer, and when its receipt was proven, if it was.
        now: the time.

    Returns:
        None when it is so already.
    """
    passed = {
        instance_id
        for instance_id, at in told.items()
        if at is not None and at + OFFER_LIFE <= now < at + ASKED_AGAIN
    }
    to = tuple(one.id for one in route.instances if one.id not in passed)
    why = route.why_none
    if route.instances and not to:
        agents = ", ".join(sorted({one.agent for one in route.instances}))
        why = f"offered to {agents}, and not accepted within {OFFER_LIFE.seconds} seconds"
    # A pending task keeps the reason that it became pending for.
    if to == task.offered_to and (to or task.state is TaskState.PENDING):
        return None
    state = TaskState.OFFERED if to else TaskState.PENDING
    changed = replace(task, state=state, offered_to=to, reason=why if not to else "", updated_at=now)
    return TaskChange(changed, HistoryEntry(now, state, changed.reason))

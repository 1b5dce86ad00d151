"""Tasks: delegated, moved by whom the table lets, and what is remembered."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from orchestrator.domain.network.chains import Lineage
from orchestrator.domain.network.identities import Actor, AgentName, InstanceId, TaskId
from orchestrator.domain.network.refusals import Refusal
from orchestrator.domain.network.task_states import MOVES, NEEDS_REASON, UPDATES, Role, TaskState

TITLE_CHARS = 80
# A task whose instance ended is given to another one once.
MAX_ATTEMPTS = 2


_PENDING, _OFFERED, _ACCEPTED = TaskState.PENDING, TaskState.OFFERED, TaskState.ACCEPTED
_FAILED, _CANCELLED = TaskState.FAILED, TaskState.CANCELLED


@dataclass(frozen=True, slots=True)
class Target:
    """Whom a task or message is for; with none of the three set, nobody in particular.

    Attributes:
        instance_id: pins it to this instance.
        group: every agent of a group.
    """

    agent: AgentName | None = None
    instance_id: InstanceId | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """A piece of delegated work.

    Attributes:
        reason: why it stands where it stands; empty when nothing needs saying.
        offered_to: instances that may accept it now.
        declined_by: instances that will not be offered it again.
        assignee: the instance that accepted it.
        attempt: how often it was accepted.
        call_id: the delegating call; one call makes one task.
        lineage: whose work it is part of.
        tasks_below: how many tasks were made for it, and for those; counted where it is part of no other.
    """

    id: TaskId
    title: str
    objective: str
    acceptance_criteria: tuple[str, ...]
    creator: AgentName
    creator_instance: InstanceId
    call_id: str
    target: Target
    resource: str | None
    state: TaskState
    created_at: datetime
    updated_at: datetime
    reason: str = ""
    offered_to: tuple[InstanceId, ...] = ()
    declined_by: tuple[InstanceId, ...] = ()
    assignee: AgentName | None = None
    assignee_instance: InstanceId | None = None
    attempt: int = 0
    lineage: Lineage = field(default_factory=Lineage)
    tasks_below: int = 0


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One change of a task; entries are only ever added.

    Attributes:
        agent: who did it; empty when the network itself did.
        call_id: the call that did it; repeating the call repeats nothing.
    """

    at: datetime
    state: TaskState
    reason: str = ""
    agent: str = ""
    instance_id: str = ""
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class TaskChange:
    """A task after a change, and what to add to its history."""

    task: Task
    entry: HistoryEntry


def default_title(objective: str) -> str:
    """The objective's first line, cut."""
    line = objective.strip().splitlines()[0].strip() if objective.strip() else ""
    return line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 3].rstrip() + "..."


def created(task: Task, offer_to: Collection[InstanceId], why_pending: str) -> TaskChange:
    """A new task: offered to the instances that can take it, or pending with the reason."""
    if offer_to:
        task = replace(task, state=_OFFERED, offered_to=tuple(offer_to), reason="")
    else:
        task = replace(task, state=_PENDING, offered_to=(), reason=why_pending)
    entry = HistoryEntry(
        task.created_at, task.state, task.reason, task.creator, task.creator_instance, task.call_id
    )
    return TaskChange(task, entry)


def updated(task: Task, status: TaskState, reason: str, actor: Actor, now: datetime) -> TaskChange | Refusal:
    """What an agent's update does to a task.

    An instance that was offered the task accepts or declines it (`cancelled`); the one that accepted it
    reports progress; its creator, or the one that accepted it, cancels it.
    """
    reason = reason.strip()
    if status in NEEDS_REASON and not reason:
        return Refusal("reason_required", f"status {status.value!r} needs a reason: {NEEDS_REASON[status]}")
    if status is _ACCEPTED:
        return _accepted(task, reason, actor, now)
    if status is _CANCELLED and _declines(task, actor):
        return _declined(task, reason, actor, now)
    roles = roles_of(task, actor)
    may = MOVES[task.state].get(status, frozenset())
    if not roles or (may and not may & roles):
        return _not_yours(task, status, may)
    return _moved(task, status, reason, actor, now)


def _accepted(task: Task, reason: str, actor: Actor, now: datetime) -> TaskChange | Refusal:
    if task.assignee_instance is not None and task.assignee_instance != actor.instance_id:
        return Refusal(
            "task_taken",
            f"task {task.id!r} was accepted by {task.assignee!r}; leave it to them",
            {"assignee": {"agent": task.assignee, "instance_id": task.assignee_instance}, **_where(task)},
        )
    if task.state is not _OFFERED:
        return _illegal(task, _ACCEPTED)
    if actor.instance_id not in task.offered_to:
        return Refusal("not_offered", f"task {task.id!r} was not offered to this instance", _where(task))
    taken = replace(
        task,
        offered_to=(),
        assignee=actor.agent,
        assignee_instance=actor.instance_id,
        attempt=task.attempt + 1,
    )
    return _moved(taken, _ACCEPTED, reason, actor, now)


def _declines(task: Task, actor: Actor) -> bool:
    return (
        task.state is _OFFERED
        and actor.instance_id in task.offered_to
        and actor.instance_id != task.creator_instance
    )


def _declined(task: Task, reason: str, actor: Actor, now: datetime) -> TaskChange:
    left = tuple(instance for instance in task.offered_to if instance != actor.instance_id)
    said = f"declined by {actor.agent}" + (f": {reason}" if reason else "")
    task = replace(task, offered_to=left, declined_by=(*task.declined_by, actor.instance_id), updated_at=now)
    if not left:
        task = replace(task, state=_PENDING, reason=said)
    return TaskChange(task, _entry(task, said, actor, now))


def roles_of(task: Task, actor: Actor) -> frozenset[Role]:
    """What an actor is to a task; an agent's every instance is its creator."""
    return frozenset(
        role
        for role, holds in (
            (Role.CREATOR, task.creator == actor.agent),
            (Role.OFFERED, actor.instance_id in task.offered_to),
            (Role.ASSIGNEE, task.assignee_instance == actor.instance_id),
        )
        if holds
    )


def _not_yours(task: Task, status: TaskState, may: Collection[Role]) -> Refusal:
    who = " or ".join(role for role in Role if role in may and role is not Role.NETWORK) or Role.ASSIGNEE
    return Refusal("not_yours", f"only {who} can set task {task.id!r} to {status.value!r}", _where(task))


def _moved(task: Task, status: TaskState, reason: str, actor: Actor, now: datetime) -> TaskChange | Refusal:
    if status not in MOVES[task.state]:
        return _illegal(task, status)
    moved = replace(task, state=status, reason=reason, offered_to=(), updated_at=now)
    return TaskChange(moved, _entry(moved, reason, actor, now))


def orphaned(task: Task, cancelled: Collection[TaskId], now: datetime) -> TaskChange | None:
    """The end of a task whose every parent was cancelled; None for others."""
    parents = task.lineage.parents
    if task.state.terminal or not parents or not set(parents) <= set(cancelled):
        return None
    said = f"the work that it was for was cancelled: {', '.join(parents)}"
    task = replace(task, state=_CANCELLED, offered_to=(), reason=said, updated_at=now)
    return TaskChange(task, HistoryEntry(now, _CANCELLED, said))


def instance_ended(task: Task, instance_id: InstanceId, why: str, now: datetime) -> TaskChange | None:
    """What an instance's end does to a task: an offer to it lapses; work is given back once, then fails.

    Returns:
        None when the task is not touched by it.
    """
    if task.state is _OFFERED and instance_id in task.offered_to:
        left = tuple(instance for instance in task.offered_to if instance != instance_id)
        said = f"an instance it was offered to ended: {why}"
        task = replace(task, offered_to=left, updated_at=now)
        if not left:
            task = replace(task, state=_PENDING, reason=said)
        return TaskChange(task, HistoryEntry(now, task.state, said))
    if task.assignee_instance != instance_id or task.state.terminal:
        return None
    said = f"the instance that worked on it ended: {why}"
    if task.attempt < MAX_ATTEMPTS:
        task = replace(task, state=_PENDING, assignee=None, assignee_instance=None)
    else:
        task = replace(task, state=_FAILED)
    task = replace(task, reason=said, updated_at=now)
    return TaskChange(task, HistoryEntry(now, task.state, said))


def agent_removed(task: Task, agent: AgentName, why: str, now: datetime) -> TaskChange | None:
    """The end of an unfinished task that is for an agent which is no more; None for others."""
    if task.state.terminal or task.target.agent != agent:
        return None
    task = replace(task, state=_CANCELLED, offered_to=(), reason=why, updated_at=now)
    return TaskChange(task, HistoryEntry(now, _CANCELLED, why))


def _entry(task: Task, reason: str, actor: Actor, now: datetime) -> HistoryEntry:
    return HistoryEntry(now, task.state, reason, actor.agent, actor.instance_id, actor.call_id)


def _where(task: Task) -> dict[str, Any]:
    return {"task_id": task.id, "state": task.state.value}


def _illegal(task: Task, status: TaskState) -> Refusal:
    allowed = [state.value for state in UPDATES if state in MOVES[task.state]]
    then = f"from there it can become {', '.join(allowed)}" if allowed else "nothing follows"
    return Refusal(
        "illegal_transition",
        f"task {task.id!r} is {task.state.value!r} and can't become {status.value!r}; {then}",
        {**_where(task), "allowed": allowed},
    )

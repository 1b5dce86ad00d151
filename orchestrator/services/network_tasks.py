"""Tasks of a network: delegated, offered, taken by one, and reported on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from orchestrator.domain.network.artifacts import NetworkArtifact
from orchestrator.domain.network.chains import loop, next_lineage, over_budget
from orchestrator.domain.network.identities import Actor, TaskId
from orchestrator.domain.network.offers import need_of
from orchestrator.domain.network.refusals import not_found
from orchestrator.domain.network.resources import resource_key
from orchestrator.domain.network.routing import route
from orchestrator.domain.network.task_states import TaskState
from orchestrator.domain.network.tasks import (
    HistoryEntry,
    Target,
    Task,
    created,
    default_title,
    orphaned,
    updated,
)
from orchestrator.ports.ids import Ids
from orchestrator.ports.network import NetworkReader, NetworkStore, NetworkTransaction
from orchestrator.services.network_lineage import held_requests, held_tasks, roots_of
from orchestrator.services.network_members import Refused, accepted, acting_member
from orchestrator.services.network_notes import tell_other_side
from orchestrator.services.network_offers import offer_of, offer_waiting, with_room
from orchestrator.services.network_targets import target_of
from tool_registry.clock import Clock


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """A task with all that is remembered of it."""

    task: Task
    history: list[HistoryEntry]
    artifacts: list[NetworkArtifact]


@dataclass(frozen=True, slots=True)
class Delegation:
    """What is to be done, and for whom it is."""

    objective: str
    title: str | None = None
    acceptance_criteria: Sequence[str] = ()
    to_agent: str | None = None
    to_instance: str | None = None
    resource: str | None = None


class NetworkTasks:
    """Delegated work.

    Args:
        store: where the network is kept.
        clock: the time that is written down.
        ids: names new tasks and offers.
    """

    def __init__(self, store: NetworkStore, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids

    async def delegate(self, actor: Actor, wanted: Delegation) -> Task:
        """Make a task and offer it to those that can take it now; else it is pending, and says why.

        The same call again gives the same task.

        Raises:
            Refused: `not_found` for a target outside this network, `target_ended`, `self_request`,
                `invalid_resource`, `collaboration_loop_detected`, `collaboration_chain_too_long`,
                `delegation_budget_spent`.
        """
        resource = None if wanted.resource is None else accepted(resource_key(wanted.resource))

        def make(tx: NetworkTransaction) -> Task:
            acting_member(tx, actor)
            there = tx.task_of_call(actor.instance_id, actor.call_id)
            if there is not None:
                return there
            target = target_of(tx, actor, wanted.to_agent, wanted.to_instance)
            now = self._clock.now()
            task = self._new_task(actor, wanted, target, resource, now)
            held = held_tasks(tx, actor), held_requests(tx, actor, now)
            task = replace(task, lineage=accepted(next_lineage(actor.agent, *held)))
            roots = roots_of(tx, task.lineage.parents)
            if refusal := over_budget(roots):
                raise Refused(refusal)
            need = need_of(task)
            found = route(need, tx.definitions(), tx.live_instances(), now)
            if refusal := loop(found.wanted, need.not_agents):
                raise Refused(refusal)
            found = with_room(tx, found)
            change = created(task, [instance.id for instance in found.instances], found.why_none)
            tx.put_task(change)
            tx.count_below(roots)
            tx.put_deliveries([offer_of(self._ids, task, instance, now) for instance in found.instances])
            return change.task

        return await self._store.change(actor.network, make)

    def _new_task(
        self, actor: Actor, wanted: Delegation, target: Target, resource: str | None, now: datetime
    ) -> Task:
        return Task(
            id=TaskId(self._ids.new()),
            title=(wanted.title or "").strip() or default_title(wanted.objective),
            objective=wanted.objective,
            acceptance_criteria=tuple(wanted.acceptance_criteria),
            creator=actor.agent,
            creator_instance=actor.instance_id,
            call_id=actor.call_id,
            target=target,
            resource=resource,
            state=TaskState.PENDING,
            created_at=now,
            updated_at=now,
        )

    async def get(self, actor: Actor, task_id: str) -> TaskRecord:
        """A task of the actor's network.

        Raises:
            Refused: `not_found`.
        """

        def look(reader: NetworkReader) -> TaskRecord:
            acting_member(reader, actor)
            task = _task(reader, task_id)
            return TaskRecord(task, reader.history(task.id), reader.artifacts_of_task(task.id))

        return await self._store.read(actor.network, look)

    async def update(self, actor: Actor, task_id: str, status: TaskState, reason: str) -> Task:
        """Move a task; the same call again gives the task as it stands.

        Raises:
            Refused: `not_found`, `reason_required`, `task_taken` with the winner, `not_offered`, `not_yours`,
                `illegal_transition` with what is allowed.
        """

        def move(tx: NetworkTransaction) -> Task:
            acting_member(tx, actor)
            task = _task(tx, task_id)
            if _was_made_by(actor, tx.history(task.id)):
                return task
            now = self._clock.now()
            change = accepted(updated(task, status, reason, actor, now))
            tx.put_task(change)
            tell_other_side(tx, self._ids, change.task, change.entry, now)
            if change.task.state is TaskState.CANCELLED:
                self._cancel_below(tx, change.task.id, now)
            offer_waiting(tx, self._ids, now)
            return change.task

        return await self._store.change(actor.network, move)

    def _cancel_below(self, tx: NetworkTransaction, task_id: TaskId, now: datetime) -> None:
        """Cancel the work that was only for a cancelled task, and what was only for that."""
        cancelled = {task_id}
        # A task is younger than its parents: one pass in the order of age meets every child after them.
        for task in tx.open_tasks():
            before = {one for one in task.lineage.parents if _is_cancelled(tx, one)}
            change = orphaned(task, cancelled | before, now)
            if change is not None:
                tx.put_task(change)
                tell_other_side(tx, self._ids, change.task, change.entry, now)
                cancelled.add(task.id)


def _is_cancelled(reader: NetworkReader, task_id: TaskId) -> bool:
    task = reader.task(task_id)
    return task is not None and task.state is TaskState.CANCELLED


def _was_made_by(actor: Actor, history: Sequence[HistoryEntry]) -> bool:
    """Whether one of these changes was this very call's."""
    return any((one.instance_id, one.call_id) == (actor.instance_id, actor.call_id) for one in history)


def _task(reader: NetworkReader, task_id: str) -> Task:
    task = reader.task(TaskId(task_id))
    if task is None:
        raise Refused(not_found("task", task_id))
    return task

"""Tasks of a network: delegated, offered, taken by one, and reported on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from orchestrator.domain.network.agents import Instance
from orchestrator.domain.network.artifacts import NetworkArtifact
from orchestrator.domain.network.identities import Actor, DeliveryId, TaskId
from orchestrator.domain.network.refusals import not_found
from orchestrator.domain.network.resources import resource_key
from orchestrator.domain.network.tasks import (
    HistoryEntry,
    Target,
    Task,
    TaskState,
    created,
    default_title,
    updated,
)
from orchestrator.domain.network.threads import Delivery
from orchestrator.ports.ids import Ids
from orchestrator.ports.network import NetworkReader, NetworkStore, NetworkTransaction
from orchestrator.services.network_members import Refused, accepted, acting_member
from orchestrator.services.network_targets import target_of, who_can_take
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
                `invalid_resource`.
        """
        resource = None if wanted.resource is None else accepted(resource_key(wanted.resource))

        def make(tx: NetworkTransaction) -> Task:
            acting_member(tx, actor)
            there = tx.task_of_call(actor.instance_id, actor.call_id)
            if there is not None:
                return there
            target = target_of(tx, actor, wanted.to_agent, wanted.to_instance)
            now = self._clock.now()
            able, why_pending = who_can_take(tx, actor, target, resource, now)
            task = self._new_task(actor, wanted, target, resource, now)
            change = created(task, [instance.id for instance in able], why_pending)
            tx.put_task(change)
            tx.put_deliveries([self._offer(actor, task.id, instance, now) for instance in able])
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

    def _offer(self, actor: Actor, task_id: TaskId, instance: Instance, now: datetime) -> Delivery:
        return Delivery(
            id=DeliveryId(self._ids.new()),
            agent=instance.agent,
            instance_id=instance.id,
            sender_instance=actor.instance_id,
            message_id=None,
            task_id=task_id,
            created_at=now,
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
            change = accepted(updated(task, status, reason, actor, self._clock.now()))
            tx.put_task(change)
            return change.task

        return await self._store.change(actor.network, move)


def _was_made_by(actor: Actor, history: Sequence[HistoryEntry]) -> bool:
    """Whether one of these changes was this very call's."""
    return any((one.instance_id, one.call_id) == (actor.instance_id, actor.call_id) for one in history)


def _task(reader: NetworkReader, task_id: str) -> Task:
    task = reader.task(TaskId(task_id))
    if task is None:
        raise Refused(not_found("task", task_id))
    return task

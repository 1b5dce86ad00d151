"""A network's tasks with their history, claims and artifacts as rows."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import ColumnElement, func, insert, select, update

from orchestrator.adapters.db.network_rows import Kind, Rows
from orchestrator.adapters.db.tables_network import (
    network_artifacts,
    network_claims,
    network_task_history,
    network_tasks,
)
from orchestrator.domain.network.artifacts import NetworkArtifact
from orchestrator.domain.network.claims import Claim
from orchestrator.domain.network.identities import ClaimId, InstanceId, TaskId
from orchestrator.domain.network.routing import wanted_key
from orchestrator.domain.network.task_states import TaskState
from orchestrator.domain.network.tasks import HistoryEntry, Task, TaskChange

_TASKS = Kind(network_tasks, Task)
_HISTORY = Kind(network_task_history, HistoryEntry, "number")
_CLAIMS = Kind(network_claims, Claim)
_ARTIFACTS = Kind(network_artifacts, NetworkArtifact)
_TERMINAL = [state.value for state in TaskState if state.terminal]


class WorkRows(Rows):
    """What `ports/network_work.py` asks for, within one transaction."""

    def task_counts(self) -> dict[TaskState, int]:
        table = network_tasks.c
        query = select(table.state, func.count()).where(table.network == self.network)
        rows = self.connection.execute(query.group_by(table.state)).all()
        return {TaskState(state): count for state, count in rows}

    def task(self, task_id: TaskId) -> Task | None:
        return self.one(_TASKS, network_tasks.c.id == task_id)

    def task_of_call(self, instance_id: InstanceId, call_id: str) -> Task | None:
        table = network_tasks.c
        return self.one(_TASKS, table.creator_instance == instance_id, table.call_id == call_id)

    def history(self, task_id: TaskId) -> list[HistoryEntry]:
        table = network_task_history.c
        return self.all(_HISTORY, self.select(_HISTORY, table.task_id == task_id).order_by(table.number))

    def recent_tasks(self, limit: int, *, resource: str | None = None) -> list[Task]:
        table = network_tasks.c
        query = self.select(_TASKS).order_by(table.updated_at.desc(), table.id.desc()).limit(limit)
        return self.all(_TASKS, query if resource is None else query.where(table.resource == resource))

    def tasks_in(self, states: Collection[TaskState], limit: int) -> list[Task]:
        table = network_tasks.c
        query = self.select(_TASKS, table.state.in_([one.value for one in states]))
        return self.all(_TASKS, query.order_by(table.updated_at.desc(), table.id.desc()).limit(limit))

    def open_tasks(self) -> list[Task]:
        return self._tasks(network_tasks.c.state.not_in(_TERMINAL))

    def pending_tasks(self, wanted: Collection[str], limit: int, *, skip: int = 0) -> list[Task]:
        table = network_tasks.c
        query = self.select(_TASKS, table.state == TaskState.PENDING.value, table.wanted.in_(wanted))
        return self.all(_TASKS, query.order_by(table.created_at, table.id).limit(limit).offset(skip))

    def offered_tasks(self) -> list[Task]:
        return self._tasks(network_tasks.c.state == TaskState.OFFERED.value)

    def tasks_held_by(self, instance_id: InstanceId) -> list[Task]:
        table = network_tasks.c
        return self._tasks(table.assignee_instance == instance_id, table.state.not_in(_TERMINAL))

    def claim(self, claim_id: ClaimId) -> Claim | None:
        return self.one(_CLAIMS, network_claims.c.id == claim_id)

    def active_claims(self, now: datetime) -> list[Claim]:
        table = network_claims.c
        query = self.select(_CLAIMS, table.ended_at.is_(None), table.expires_at > now)
        return self.all(_CLAIMS, query.order_by(table.created_at, table.id))

    def artifacts_of_task(self, task_id: TaskId) -> list[NetworkArtifact]:
        table = network_artifacts.c
        query = self.select(_ARTIFACTS, table.task_id == task_id)
        return self.all(_ARTIFACTS, query.order_by(table.created_at, table.id))

    def artifact_of_call(self, instance_id: InstanceId, call_id: str) -> NetworkArtifact | None:
        table = network_artifacts.c
        return self.one(_ARTIFACTS, table.instance_id == instance_id, table.call_id == call_id)

    def recent_changes(self, limit: int) -> list[tuple[TaskId, HistoryEntry]]:
        query = self.select(_HISTORY).order_by(network_task_history.c.number.desc()).limit(limit)
        rows = self.connection.execute(query).mappings().all()
        return [(TaskId(row["task_id"]), _HISTORY.value(row)) for row in rows]

    def put_task(self, change: TaskChange) -> None:
        task = change.task
        self.put(_TASKS, task, wanted=wanted_key(task.target, task.resource))
        entry = {**_HISTORY.row(self.network, change.entry), "task_id": change.task.id}
        self.connection.execute(insert(network_task_history).values(entry))

    def count_below(self, task_ids: Collection[TaskId]) -> None:
        table = network_tasks.c
        self.connection.execute(
            update(network_tasks)
            .where(table.network == self.network, table.id.in_(list(task_ids)))
            .values(tasks_below=table.tasks_below + 1)
        )

    def put_claim(self, claim: Claim) -> None:
        self.put(_CLAIMS, claim)

    def end_claims(self, instance_id: InstanceId, at: datetime) -> None:
        table = network_claims.c
        self.connection.execute(
            update(network_claims)
            .where(
                table.network == self.network,
                table.instance_id == instance_id,
                table.ended_at.is_(None),
                table.expires_at > at,
            )
            .values(ended_at=at)
        )

    def add_artifact(self, artifact: NetworkArtifact) -> None:
        self.put(_ARTIFACTS, artifact)

    def _tasks(self, *conditions: ColumnElement[bool]) -> list[Task]:
        table = network_tasks.c
        return self.all(_TASKS, self.select(_TASKS, *conditions).order_by(table.created_at, table.id))

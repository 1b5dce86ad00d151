"""What is kept of a network's tasks, claims and artifacts; parts of `NetworkStore`."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Protocol

from orchestrator.domain.network.artifacts import NetworkArtifact
from orchestrator.domain.network.claims import Claim
from orchestrator.domain.network.identities import ClaimId, InstanceId, TaskId
from orchestrator.domain.network.task_states import TaskState
from orchestrator.domain.network.tasks import HistoryEntry, Task, TaskChange


class WorkReader(Protocol):
    """What one network has of them."""

    def task_counts(self) -> dict[TaskState, int]:
        """How many tasks are in each state; states without any are left out."""
        ...

    def task(self, task_id: TaskId) -> Task | None:
        """A task."""
        ...

    def task_of_call(self, instance_id: InstanceId, call_id: str) -> Task | None:
        """The task that a call delegated."""
        ...

    def history(self, task_id: TaskId) -> list[HistoryEntry]:
        """A task's history, oldest first."""
        ...

    def recent_tasks(self, limit: int, *, resource: str | None = None) -> list[Task]:
        """Tasks, those changed last first; of one resource, when one is given."""
        ...

    def tasks_in(self, states: Collection[TaskState], limit: int) -> list[Task]:
        """Tasks in one of these states, those changed last first."""
        ...

    def open_tasks(self) -> list[Task]:
        """Tasks that are not in a terminal state, oldest first."""
        ...

    def pending_tasks(self, wanted: Collection[str], limit: int, *, skip: int = 0) -> list[Task]:
        """Pending tasks that wait for one of these (see `routing.wanted_key`), oldest first."""
        ...

    def offered_tasks(self) -> list[Task]:
        """Tasks that are offered to somebody, oldest first."""
        ...

    def tasks_held_by(self, instance_id: InstanceId) -> list[Task]:
        """Unfinished tasks that an instance has accepted, oldest first."""
        ...

    def claim(self, claim_id: ClaimId) -> Claim | None:
        """A claim, also an ended one."""
        ...

    def active_claims(self, now: datetime) -> list[Claim]:
        """Claims that hold at `now`, oldest first."""
        ...

    def artifacts_of_task(self, task_id: TaskId) -> list[NetworkArtifact]:
        """What was published for a task, oldest first."""
        ...

    def artifact_of_call(self, instance_id: InstanceId, call_id: str) -> NetworkArtifact | None:
        """What a call published."""
        ...

    def recent_changes(self, limit: int) -> list[tuple[TaskId, HistoryEntry]]:
        """The newest changes of tasks, newest first."""
        ...


class WorkWriter(Protocol):
    """Changes of them in one network; `put_*` stores a new row or replaces the one of the same id."""

    def put_task(self, change: TaskChange) -> None:
        """Store a task and add to its history."""
        ...

    def count_below(self, task_ids: Collection[TaskId]) -> None:
        """One more task was made for these."""
        ...

    def put_claim(self, claim: Claim) -> None:
        """Store a claim."""
        ...

    def end_claims(self, instance_id: InstanceId, at: datetime) -> None:
        """End the claims of an instance that hold at `at`."""
        ...

    def add_artifact(self, artifact: NetworkArtifact) -> None:
        """Store an artifact."""
        ...

"""What a member sees of its network, and what it tells about itself and its work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from orchestrator.domain.network.agents import AgentDefinition
from orchestrator.domain.network.artifacts import NetworkArtifact, artifact_uri
from orchestrator.domain.network.capabilities import Capability, declared
from orchestrator.domain.network.discovery import Candidate, candidates
from orchestrator.domain.network.identities import Actor, ArtifactId, TaskId
from orchestrator.domain.network.refusals import not_found
from orchestrator.domain.network.resources import resource_key
from orchestrator.domain.network.tasks import Task
from orchestrator.ports.ids import Ids
from orchestrator.ports.network import NetworkReader, NetworkStore, NetworkTransaction
from orchestrator.services.network_members import Member, Refused, accepted, acting_member
from tool_registry.clock import Clock

RECENT_TASKS = 20


@dataclass(frozen=True, slots=True)
class Discovery:
    """What there is in a network, for one caller.

    Attributes:
        groups: group name to its agents' names.
        resources: canonical keys to the names of the agents that answer for them.
    """

    at: datetime
    agents: list[Candidate]
    groups: dict[str, list[str]]
    resources: dict[str, list[str]]
    tasks: list[Task]


class NetworkDirectory:
    """Agents, resources and artifacts of a network, for its members.

    Args:
        store: where the network is kept.
        clock: tells who is available, and dates artifacts.
        ids: names new artifacts.
    """

    def __init__(self, store: NetworkStore, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids

    async def whoami(self, actor: Actor) -> Member:
        """The actor's agent and instance.

        Raises:
            Refused: `not_a_member`.
        """
        return await self._store.read(actor.network, lambda reader: acting_member(reader, actor))

    async def discover(self, actor: Actor, resource: str | None, action: str | None) -> Discovery:
        """Agents that fit, best first, with the groups, resources and recent tasks of the network.

        Raises:
            Refused: `not_a_member`, `invalid_resource`.
        """
        key = None if resource is None else accepted(resource_key(resource))
        now = self._clock.now()

        def look(reader: NetworkReader) -> Discovery:
            acting_member(reader, actor)
            definitions = reader.definitions()
            found = candidates(definitions, reader.live_instances(), now, resource=key, action=action)
            tasks = reader.recent_tasks(RECENT_TASKS, resource=key)
            return Discovery(now, found, _groups(definitions), _resources(definitions, tasks, key), tasks)

        return await self._store.read(actor.network, look)

    async def register_capabilities(
        self, actor: Actor, items: Sequence[Mapping[str, Any]]
    ) -> tuple[Capability, ...]:
        """Replace what the actor's instance declares; its definition's own capabilities stay.

        Raises:
            Refused: `not_a_member`; `invalid_capabilities`, and the earlier declaration stays.
        """
        capabilities = accepted(declared(items))

        def declare(tx: NetworkTransaction) -> tuple[Capability, ...]:
            tx.put_instance(replace(acting_member(tx, actor).instance, capabilities=capabilities))
            return capabilities

        return await self._store.change(actor.network, declare)

    async def publish_artifact(
        self, actor: Actor, uri: str, *, label: str, artifact_type: str, task_id: str | None
    ) -> NetworkArtifact:
        """Publish a reference; the same call again gives the same artifact.

        Raises:
            Refused: `not_a_member`; `invalid_uri`; `not_found` for the task.
        """
        artifact = NetworkArtifact(
            id=ArtifactId(self._ids.new()),
            uri=accepted(artifact_uri(uri)),
            type=artifact_type,
            label=label,
            task_id=None if task_id is None else TaskId(task_id),
            agent=actor.agent,
            instance_id=actor.instance_id,
            call_id=actor.call_id,
            created_at=self._clock.now(),
        )

        def publish(tx: NetworkTransaction) -> NetworkArtifact:
            acting_member(tx, actor)
            there = tx.artifact_of_call(actor.instance_id, actor.call_id)
            if there is not None:
                return there
            if artifact.task_id is not None and tx.task(artifact.task_id) is None:
                raise Refused(not_found("task", artifact.task_id))
            tx.add_artifact(artifact)
            return artifact

        return await self._store.change(actor.network, publish)


def _groups(definitions: Sequence[AgentDefinition]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for definition in definitions:
        for group in definition.groups:
            groups.setdefault(group, []).append(definition.name)
    return dict(sorted(groups.items()))


def _resources(
    definitions: Sequence[AgentDefinition], tasks: Sequence[Task], only: str | None
) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {task.resource: [] for task in tasks if task.resource}
    for definition in definitions:
        for duty in definition.responsibilities:
            if duty.resource_key is not None:
                found.setdefault(duty.resource_key, []).append(definition.name)
    return {key: sorted(set(found[key])) for key in sorted(found) if only in {None, key}}

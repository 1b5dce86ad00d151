"""The agent network in memory: the same contract as the database's, without the database."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

import anyio
import anyio.lowlevel

from orchestrator.domain.network.agents import AgentDefinition, Instance, InstanceState
from orchestrator.domain.network.artifacts import NetworkArtifact
from orchestrator.domain.network.claims import Claim
from orchestrator.domain.network.collaboration import CollaborationRequest
from orchestrator.domain.network.identities import (
    Actor,
    AgentName,
    ArtifactId,
    ClaimId,
    DeliveryId,
    InstanceId,
    MessageId,
    NetworkName,
    RequestId,
    TaskId,
    ThreadId,
)
from orchestrator.domain.network.launches import AgentLaunch
from orchestrator.domain.network.routing import wanted_key
from orchestrator.domain.network.signing import signed_bytes
from orchestrator.domain.network.task_states import TaskState
from orchestrator.domain.network.tasks import HistoryEntry, Task, TaskChange
from orchestrator.domain.network.threads import Delivery, DeliveryState, Message, Thread
from orchestrator.ports.errors import AlreadyExists, StoreError
from orchestrator.ports.message_signer import MessageSigner
from orchestrator.ports.network import NetworkReader, NetworkTransaction

T = TypeVar("T")
Owners = dict[InstanceId, NetworkName]


@dataclass
class _Network:
    """One network's rows; dictionaries keep the order in which rows were added."""

    name: NetworkName
    made: bool = False
    revision: int = 0
    agents: dict[AgentName, AgentDefinition] = field(default_factory=dict[AgentName, AgentDefinition])
    stored_at: dict[AgentName, int] = field(default_factory=dict[AgentName, int])
    instances: dict[InstanceId, Instance] = field(default_factory=dict[InstanceId, Instance])
    tasks: dict[TaskId, Task] = field(default_factory=dict[TaskId, Task])
    histories: dict[TaskId, tuple[HistoryEntry, ...]] = field(
        default_factory=dict[TaskId, tuple[HistoryEntry, ...]]
    )
    claims: dict[ClaimId, Claim] = field(default_factory=dict[ClaimId, Claim])
    artifacts: dict[ArtifactId, NetworkArtifact] = field(default_factory=dict[ArtifactId, NetworkArtifact])
    threads: dict[ThreadId, Thread] = field(default_factory=dict[ThreadId, Thread])
    messages: dict[MessageId, Message] = field(default_factory=dict[MessageId, Message])
    requests: dict[RequestId, CollaborationRequest] = field(
        default_factory=dict[RequestId, CollaborationRequest]
    )
    lengths: dict[ThreadId, int] = field(default_factory=dict[ThreadId, int])
    launches: dict[AgentName, AgentLaunch] = field(default_factory=dict[AgentName, AgentLaunch])
    deliveries: dict[DeliveryId, Delivery] = field(default_factory=dict[DeliveryId, Delivery])

    def copied(self) -> _Network:
        """The same rows in dictionaries of their own; rows never change."""
        changed = copy.copy(self)
        for name, value in vars(self).items():
            setattr(changed, name, copy.copy(value))
        return changed


class _Rows:
    """Reads and puts over one network's rows."""

    def __init__(
        self, rows: _Network, owners: Owners, signer: MessageSigner | None, given: list[AgentName]
    ) -> None:
        self._given = given
        self._signer = signer
        self._rows = rows
        self._owners = owners

    def exists(self) -> bool:
        return self._rows.made

    def definitions(self) -> list[AgentDefinition]:
        self._given += self.agent_names()
        return [self._rows.agents[name] for name in self.agent_names()]

    def definition(self, name: AgentName) -> AgentDefinition | None:
        return self._rows.agents.get(name)

    def profiles_revision(self) -> int:
        return self._rows.revision

    def agent_names(self) -> list[AgentName]:
        return sorted(self._rows.agents)

    def definitions_since(self, revision: int) -> list[AgentDefinition]:
        found = [name for name in self.agent_names() if self._rows.stored_at[name] > revision]
        self._given += found
        return [self._rows.agents[name] for name in found]

    def launch(self, agent: AgentName) -> AgentLaunch | None:
        return self._rows.launches.get(agent)

    def task_counts(self) -> dict[TaskState, int]:
        return dict(Counter(one.state for one in self._rows.tasks.values()))

    def live_instances(self) -> list[Instance]:
        return sorted(
            (one for one in self._rows.instances.values() if one.live),
            key=lambda one: (one.joined_at, one.id),
        )

    def serving_agents(self, heard_since: datetime) -> list[AgentName]:
        return sorted(
            {
                one.agent
                for one in self._rows.instances.values()
                if one.state is InstanceState.ACTIVE
                and (one.person or (one.last_seen_at and one.last_seen_at >= heard_since))
            }
        )

    def declaring_instances(self) -> list[Instance]:
        return [one for one in self.live_instances() if one.capabilities]

    def instance(self, instance_id: InstanceId) -> Instance | None:
        return self._rows.instances.get(instance_id)

    def task(self, task_id: TaskId) -> Task | None:
        return self._rows.tasks.get(task_id)

    def task_of_call(self, instance_id: InstanceId, call_id: str) -> Task | None:
        calls = {(one.creator_instance, one.call_id): one for one in self._rows.tasks.values()}
        return calls.get((instance_id, call_id))

    def history(self, task_id: TaskId) -> list[HistoryEntry]:
        return list(self._rows.histories.get(task_id, ()))

    def recent_tasks(self, limit: int, *, resource: str | None = None) -> list[Task]:
        found = [one for one in self._rows.tasks.values() if resource in {None, one.resource}]
        return sorted(found, key=lambda one: (one.updated_at, one.id), reverse=True)[:limit]

    def tasks_in(self, states: Collection[TaskState], limit: int) -> list[Task]:
        found = [one for one in self._rows.tasks.values() if one.state in states]
        return sorted(found, key=lambda one: (one.updated_at, one.id), reverse=True)[:limit]

    def open_tasks(self) -> list[Task]:
        found = [one for one in self._rows.tasks.values() if not one.state.terminal]
        return sorted(found, key=lambda one: (one.created_at, one.id))

    def pending_tasks(self, wanted: Collection[str], limit: int, *, skip: int = 0) -> list[Task]:
        found = [one for one in self.open_tasks() if one.state is TaskState.PENDING]
        return [one for one in found if wanted_key(one.target, one.resource) in wanted][skip:][:limit]

    def offered_tasks(self) -> list[Task]:
        return [one for one in self.open_tasks() if one.state is TaskState.OFFERED]

    def tasks_held_by(self, instance_id: InstanceId) -> list[Task]:
        return [one for one in self.open_tasks() if one.assignee_instance == instance_id]

    def claim(self, claim_id: ClaimId) -> Claim | None:
        return self._rows.claims.get(claim_id)

    def active_claims(self, now: datetime) -> list[Claim]:
        found = [one for one in self._rows.claims.values() if one.active(now)]
        return sorted(found, key=lambda one: (one.created_at, one.id))

    def artifacts_of_task(self, task_id: TaskId) -> list[NetworkArtifact]:
        found = [one for one in self._rows.artifacts.values() if one.task_id == task_id]
        return sorted(found, key=lambda one: (one.created_at, one.id))

    def artifact_of_call(self, instance_id: InstanceId, call_id: str) -> NetworkArtifact | None:
        calls = {(one.instance_id, one.call_id): one for one in self._rows.artifacts.values()}
        return calls.get((instance_id, call_id))

    def thread(self, thread_id: ThreadId) -> Thread | None:
        return self._rows.threads.get(thread_id)

    def threads(self, limit: int) -> list[Thread]:
        found = sorted(self._rows.threads.values(), key=lambda one: (one.created_at, one.id), reverse=True)
        return found[:limit]

    def messages_of_thread(self, thread_id: ThreadId) -> list[Message]:
        found = [one for one in self._rows.messages.values() if one.thread_id == thread_id]
        return sorted(found, key=lambda one: (one.sequence, one.created_at, one.id))

    def thread_length(self, thread_id: ThreadId) -> int:
        return self._rows.lengths.get(thread_id, 0)

    def recent_messages(self, limit: int) -> list[Message]:
        return list(reversed(self._rows.messages.values()))[:limit]

    def recent_changes(self, limit: int) -> list[tuple[TaskId, HistoryEntry]]:
        found = [(one, entry) for one, history in self._rows.histories.items() for entry in history]
        return sorted(found, key=lambda pair: pair[1].at, reverse=True)[:limit]

    def recent_traffic(self, limit: int) -> list[tuple[AgentName, AgentName]]:
        copies = [one for one in self._rows.deliveries.values() if one.message_id is not None]
        return [
            (self._rows.messages[one.message_id].sender, one.agent)
            for one in reversed(copies)
            if one.message_id is not None
        ][:limit]

    def message(self, message_id: MessageId) -> Message | None:
        return self._rows.messages.get(message_id)

    def message_of_call(self, instance_id: InstanceId, call_id: str) -> Message | None:
        calls = {(one.sender_instance, one.call_id): one for one in self._rows.messages.values()}
        return calls.get((instance_id, call_id))

    def request(self, request_id: RequestId) -> CollaborationRequest | None:
        return self._rows.requests.get(request_id)

    def request_of_call(self, instance_id: InstanceId, call_id: str) -> CollaborationRequest | None:
        calls = {(one.requester_instance, one.call_id): one for one in self._rows.requests.values()}
        return calls.get((instance_id, call_id))

    def request_of_thread(self, thread_id: ThreadId) -> CollaborationRequest | None:
        return {one.thread_id: one for one in self._rows.requests.values()}.get(thread_id)

    def unanswered_requests(self, agent: AgentName, since: datetime) -> list[CollaborationRequest]:
        found = [
            one
            for one in self._rows.requests.values()
            if agent in {one.requester, one.target} and one.answered_at is None and one.expires_at > since
        ]
        return sorted(found, key=lambda one: (one.created_at, one.id))

    def deliveries_of_message(self, message_id: MessageId) -> list[Delivery]:
        return [one for one in self._rows.deliveries.values() if one.message_id == message_id]

    def deliveries_of_task(self, task_id: TaskId) -> list[Delivery]:
        return [one for one in self._rows.deliveries.values() if one.task_id == task_id]

    def open_deliveries(self, actor: Actor, limit: int) -> list[Delivery]:
        return [one for one in self._rows.deliveries.values() if one.open_to(actor)][:limit]

    def undelivered(self, instance_id: InstanceId) -> list[Delivery]:
        return [
            one
            for one in self._rows.deliveries.values()
            if one.state in {DeliveryState.WAITING, DeliveryState.HELD}
            and instance_id in {one.instance_id, one.held_by}
        ]

    def undelivered_to(self, agent: AgentName) -> list[Delivery]:
        return [
            one
            for one in self._rows.deliveries.values()
            if one.state in {DeliveryState.WAITING, DeliveryState.HELD} and one.agent == agent
        ]

    def delete_definition(self, name: AgentName) -> None:
        self._rows.revision += 1
        self._rows.agents.pop(name, None)

    def create(self, at: datetime) -> None:
        self._rows.made = True

    def put_definition(self, definition: AgentDefinition) -> None:
        self._rows.revision += 1
        self._rows.agents[definition.name] = definition
        self._rows.stored_at[definition.name] = self._rows.revision

    def put_instance(self, instance: Instance) -> None:
        if self._owners.setdefault(instance.id, self._rows.name) != self._rows.name:
            raise AlreadyExists(f"instance {instance.id!r} is in another network")
        self._rows.instances[instance.id] = instance

    def put_launch(self, launch: AgentLaunch) -> None:
        self._rows.launches[launch.agent] = launch

    def put_task(self, change: TaskChange) -> None:
        self._rows.tasks[change.task.id] = change.task
        self._rows.histories[change.task.id] = (*self.history(change.task.id), change.entry)

    def count_below(self, task_ids: Collection[TaskId]) -> None:
        for task_id in task_ids:
            task = self._rows.tasks[task_id]
            self._rows.tasks[task_id] = replace(task, tasks_below=task.tasks_below + 1)

    def put_claim(self, claim: Claim) -> None:
        self._rows.claims[claim.id] = claim

    def end_claims(self, instance_id: InstanceId, at: datetime) -> None:
        for claim in self.active_claims(at):
            if claim.instance_id == instance_id:
                self._rows.claims[claim.id] = replace(claim, ended_at=at)

    def add_artifact(self, artifact: NetworkArtifact) -> None:
        self._rows.artifacts[artifact.id] = artifact

    def put_thread(self, thread: Thread) -> None:
        self._rows.threads[thread.id] = thread

    def add_message(self, message: Message) -> None:
        if self._signer is not None:
            number = self._rows.lengths[message.thread_id] = self.thread_length(message.thread_id) + 1
            message = replace(message, sequence=number, key_id=self._signer.key_id)
            data = signed_bytes(self._rows.name, message)
            message = replace(message, signature=self._signer.sign(data))
        self._rows.messages[message.id] = message

    def put_request(self, request: CollaborationRequest) -> None:
        self._rows.requests[request.id] = request

    def put_deliveries(self, deliveries: Sequence[Delivery]) -> None:
        self._rows.deliveries |= {one.id: one for one in deliveries}


class MemoryNetworkStore:
    """Networks that are gone with the process.

    Attributes:
        broken: what every change raises.
        given: whose definitions were handed out in lists.
    """

    def __init__(self, signer: MessageSigner | None = None) -> None:
        self.broken: StoreError | None = None
        self.given: list[AgentName] = []
        self._signer = signer
        self._networks: dict[NetworkName, _Network] = {}
        self._owners: Owners = {}
        self._turn = anyio.Lock()

    async def read(self, network: NetworkName, work: Callable[[NetworkReader], T]) -> T:
        await anyio.lowlevel.checkpoint()
        rows = self._networks.get(network) or _Network(network)
        return work(_Rows(rows, self._owners, self._signer, self.given))

    async def change(self, network: NetworkName, work: Callable[[NetworkTransaction], T]) -> T:
        async with self._turn:
            if self.broken is not None:
                raise self.broken
            rows = (self._networks.get(network) or _Network(network)).copied()
            owners = dict(self._owners)
            result = work(_Rows(rows, owners, self._signer, self.given))
            self._networks[network], self._owners = rows, owners
            return result

    def request_ids(self, network: str) -> list[str]:
        """Every request for collaboration, in the order they were sent."""
        rows = self._networks.get(NetworkName(network)) or _Network(NetworkName(network))
        return list(rows.requests)

    async def network_of(self, instance_id: InstanceId) -> NetworkName | None:
        await anyio.lowlevel.checkpoint()
        return self._owners.get(instance_id)

    async def networks(self) -> list[NetworkName]:
        await anyio.lowlevel.checkpoint()
        return sorted(name for name, rows in self._networks.items() if rows.made)

"""Where the agent network is kept."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

from orchestrator.domain.network.agents import AgentDefinition, Instance
from orchestrator.domain.network.artifacts import NetworkArtifact
from orchestrator.domain.network.claims import Claim
from orchestrator.domain.network.collaboration import CollaborationRequest
from orchestrator.domain.network.identities import (
    Actor,
    AgentName,
    ClaimId,
    InstanceId,
    MessageId,
    NetworkName,
    RequestId,
    TaskId,
    ThreadId,
)
from orchestrator.domain.network.launches import AgentLaunch
from orchestrator.domain.network.task_states import TaskState
from orchestrator.domain.network.tasks import HistoryEntry, Task, TaskChange
from orchestrator.domain.network.threads import Delivery, Message, Thread

T = TypeVar("T")


class NetworkReader(Protocol):
    """One network as it stands. Another network's things are not there."""

    def exists(self) -> bool:
        """Whether the network was made."""
        ...

    def definitions(self) -> list[AgentDefinition]:
        """Every agent, by name."""
        ...

    def definition(self, name: AgentName) -> AgentDefinition | None:
        """The agent of a (normal) name."""
        ...

    def agent_names(self) -> list[AgentName]:
        """Every agent's name, in order."""
        ...

    def profiles_revision(self) -> int:
        """A number that grows whenever an agent is stored or forgotten; 0 before the first."""
        ...

    def definitions_since(self, revision: int) -> list[AgentDefinition]:
        """The agents that were stored after the profiles had this revision, by name; -1 for all."""
        ...

    def launch(self, agent: AgentName) -> AgentLaunch | None:
        """The last time that an agent was started for its work."""
        ...

    def task_counts(self) -> dict[TaskState, int]:
        """How many tasks are in each state; states without any are left out."""
        ...

    def live_instances(self) -> list[Instance]:
        """Instances that have not ended, oldest first."""
        ...

    def serving_agents(self, heard_since: datetime) -> list[AgentName]:
        """Agents with an instance that is available, when `heard_since` is the oldest contact that counts."""
        ...

    def declaring_instances(self) -> list[Instance]:
        """Live instances that declare capabilities of their own, oldest first."""
        ...

    def instance(self, instance_id: InstanceId) -> Instance | None:
        """An instance, also an ended one."""
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

    def thread(self, thread_id: ThreadId) -> Thread | None:
        """A thread."""
        ...

    def threads(self, limit: int) -> list[Thread]:
        """Threads, the youngest first."""
        ...

    def messages_of_thread(self, thread_id: ThreadId) -> list[Message]:
        """A thread's messages, oldest first."""
        ...

    def thread_length(self, thread_id: ThreadId) -> int:
        """How many signed messages were stored in a thread."""
        ...

    def recent_messages(self, limit: int) -> list[Message]:
        """The newest messages, newest first."""
        ...

    def recent_changes(self, limit: int) -> list[tuple[TaskId, HistoryEntry]]:
        """The newest changes of tasks, newest first."""
        ...

    def recent_traffic(self, limit: int) -> list[tuple[AgentName, AgentName]]:
        """Sender and recipient of the newest copies of messages, newest first."""
        ...

    def message(self, message_id: MessageId) -> Message | None:
        """A message."""
        ...

    def message_of_call(self, instance_id: InstanceId, call_id: str) -> Message | None:
        """The message that a call sent."""
        ...

    def request(self, request_id: RequestId) -> CollaborationRequest | None:
        """A request for collaboration."""
        ...

    def request_of_call(self, instance_id: InstanceId, call_id: str) -> CollaborationRequest | None:
        """The request that a call sent."""
        ...

    def request_of_thread(self, thread_id: ThreadId) -> CollaborationRequest | None:
        """The request that a thread began with."""
        ...

    def unanswered_requests(self, agent: AgentName, since: datetime) -> list[CollaborationRequest]:
        """Requests from or to an agent, without an answer, whose time ends after `since`; oldest first."""
        ...

    def deliveries_of_message(self, message_id: MessageId) -> list[Delivery]:
        """A message's copies, in the order they were added."""
        ...

    def deliveries_of_task(self, task_id: TaskId) -> list[Delivery]:
        """A task's offers, in the order they were added."""
        ...

    def open_deliveries(self, actor: Actor, limit: int) -> list[Delivery]:
        """The first deliveries that are `open_to` the actor, in the order they were added."""
        ...

    def undelivered(self, instance_id: InstanceId) -> list[Delivery]:
        """What is pinned to an instance or held by it, and waits or is held, in the order it was added."""
        ...

    def undelivered_to(self, agent: AgentName) -> list[Delivery]:
        """What waits for an agent or is held by an instance of it, in the order it was added."""
        ...


class NetworkTransaction(NetworkReader, Protocol):
    """One network, locked: nobody else changes it before the transaction ends.

    `put_*` stores a new row or replaces the one of the same id.
    """

    def create(self, at: datetime) -> None:
        """Make the network; changes nothing when it is there."""
        ...

    def put_definition(self, definition: AgentDefinition) -> None:
        """Store an agent."""
        ...

    def delete_definition(self, name: AgentName) -> None:
        """Forget an agent; what refers to its name stays."""
        ...

    def put_instance(self, instance: Instance) -> None:
        """Store an instance.

        Raises:
            AlreadyExists: another network has an instance of this id.
        """
        ...

    def put_launch(self, launch: AgentLaunch) -> None:
        """Store an agent's launch."""
        ...

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

    def put_thread(self, thread: Thread) -> None:
        """Store a thread."""
        ...

    def add_message(self, message: Message) -> None:
        """Store a message of a stored thread as the thread's next one, signed."""
        ...

    def put_request(self, request: CollaborationRequest) -> None:
        """Store a request for collaboration."""
        ...

    def put_deliveries(self, deliveries: Sequence[Delivery]) -> None:
        """Store deliveries: new ones behind all that are there, known ones in their old places."""
        ...


class NetworkStore(Protocol):
    """Every network, durable.

    Raises:
        StoreUnavailable: from any method, when the database does not answer.
    """

    async def read(self, network: NetworkName, work: Callable[[NetworkReader], T]) -> T:
        """Read one network, all of it as of one moment, without keeping writers out.

        Args:
            network: a normal name.
            work: pure but for what it reads; may run more than once.
        """
        ...

    async def change(self, network: NetworkName, work: Callable[[NetworkTransaction], T]) -> T:
        """Change one network as one transaction: what `work` raises undoes all that it put.

        Changes of one network run one after another, in every process.

        Args:
            network: a normal name.
            work: pure but for what it reads and puts; may run more than once.
        """
        ...

    async def network_of(self, instance_id: InstanceId) -> NetworkName | None:
        """The network that an instance belongs to; ids are unique over all networks."""
        ...

    async def networks(self) -> list[NetworkName]:
        """Every network that was made, by name."""
        ...

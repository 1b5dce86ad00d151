"""`NetworkStore` over SQL."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter
from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Table,
    and_,
    delete,
    func,
    insert,
    or_,
    select,
    text,
    update,
)

from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.inserts import insert_if_absent
from orchestrator.adapters.db.tables_network import (
    network_agents,
    network_artifacts,
    network_claims,
    network_deliveries,
    network_instances,
    network_launches,
    network_messages,
    network_requests,
    network_task_history,
    network_tasks,
    network_threads,
    networks,
)
from orchestrator.domain.network.agents import AgentDefinition, Instance, InstanceState
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
from orchestrator.domain.network.routing import wanted_key
from orchestrator.domain.network.signing import signed_bytes
from orchestrator.domain.network.task_states import TaskState
from orchestrator.domain.network.tasks import HistoryEntry, Task, TaskChange
from orchestrator.domain.network.threads import Delivery, DeliveryState, Message, Thread
from orchestrator.ports.message_signer import MessageSigner
from orchestrator.ports.network import NetworkReader, NetworkTransaction

T = TypeVar("T")

_TERMINAL = [state.value for state in TaskState if state.terminal]
_UNDELIVERED = [DeliveryState.WAITING.value, DeliveryState.HELD.value]


class SqlNetworkStore:
    """Networks, one row for each thing in them.

    Changes of one network take turns: in PostgreSQL by an advisory lock of its name, in SQLite by the write
    lock.
    """

    def __init__(self, database: Database, signer: MessageSigner | None = None) -> None:
        """Without a signer messages are stored unsigned."""
        self._database = database
        self._signer = signer

    async def read(self, network: NetworkName, work: Callable[[NetworkReader], T]) -> T:
        """Read one network, all of it as of one moment."""

        def run(connection: Connection) -> T:
            if connection.dialect.name == "postgresql":
                connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"))
            return work(_Rows(connection, network, self._signer))

        return await self._database.read(run)

    async def change(self, network: NetworkName, work: Callable[[NetworkTransaction], T]) -> T:
        """Change one network as one transaction; what `work` raises undoes all that it put."""

        def run(connection: Connection) -> T:
            if connection.dialect.name == "postgresql":
                lock = text("SELECT pg_advisory_xact_lock(hashtextextended(:network, 0))")
                connection.execute(lock, {"network": f"network {network}"})
            return work(_Rows(connection, network, self._signer))

        return await self._database.write(run)

    async def network_of(self, instance_id: InstanceId) -> NetworkName | None:
        """The network that an instance belongs to."""
        query = select(network_instances.c.network).where(network_instances.c.id == instance_id)
        found = await self._database.read(lambda connection: connection.scalar(query))
        return None if found is None else NetworkName(found)

    async def networks(self) -> list[NetworkName]:
        """Every network that was made, by name."""
        query = select(networks.c.name).order_by(networks.c.name)
        found = await self._database.read(lambda connection: connection.scalars(query).all())
        return [NetworkName(name) for name in found]


class _Kind(Generic[T]):
    """Values of one kind as rows of one table; what is nested in them is JSON, as pydantic writes it."""

    def __init__(self, table: Table, kind: type[T], key: str = "id") -> None:
        self.table = table
        self.key = key
        self._adapter = TypeAdapter(kind)

    def row(self, network: NetworkName, value: T) -> dict[str, Any]:
        return {"network": network, **self._adapter.dump_python(value)}

    def value(self, row: Any) -> T:
        return self._adapter.validate_python(dict(row))


_AGENTS = _Kind(network_agents, AgentDefinition, "name")
_INSTANCES = _Kind(network_instances, Instance)
_LAUNCHES = _Kind(network_launches, AgentLaunch, "agent")
_TASKS = _Kind(network_tasks, Task)
_HISTORY = _Kind(network_task_history, HistoryEntry, "number")
_CLAIMS = _Kind(network_claims, Claim)
_ARTIFACTS = _Kind(network_artifacts, NetworkArtifact)
_THREADS = _Kind(network_threads, Thread)
_MESSAGES = _Kind(network_messages, Message)
_REQUESTS = _Kind(network_requests, CollaborationRequest)
_DELIVERIES = _Kind(network_deliveries, Delivery)


class _Rows:
    """One network's rows, within one transaction."""

    def __init__(self, connection: Connection, network: NetworkName, signer: MessageSigner | None) -> None:
        self._connection = connection
        self._signer = signer
        self._network = network

    # --- reading -----------------------------------------------------------------------------------------

    def exists(self) -> bool:
        query = select(networks.c.name).where(networks.c.name == self._network)
        return self._connection.scalar(query) is not None

    def definitions(self) -> list[AgentDefinition]:
        return self._all(_AGENTS, self._select(_AGENTS).order_by(network_agents.c.name))

    def definition(self, name: AgentName) -> AgentDefinition | None:
        return self._one(_AGENTS, network_agents.c.name == name)

    def profiles_revision(self) -> int:
        query = select(networks.c.profiles_revision).where(networks.c.name == self._network)
        return self._connection.scalar(query) or 0

    def agent_names(self) -> list[AgentName]:
        table = network_agents.c
        query = select(table.name).where(table.network == self._network).order_by(table.name)
        return [AgentName(name) for name in self._connection.scalars(query)]

    def definitions_since(self, revision: int) -> list[AgentDefinition]:
        table = network_agents.c
        return self._all(_AGENTS, self._select(_AGENTS, table.revision > revision).order_by(table.name))

    def launch(self, agent: AgentName) -> AgentLaunch | None:
        return self._one(_LAUNCHES, network_launches.c.agent == agent)

    def task_counts(self) -> dict[TaskState, int]:
        table = network_tasks.c
        query = select(table.state, func.count()).where(table.network == self._network)
        rows = self._connection.execute(query.group_by(table.state)).all()
        return {TaskState(state): count for state, count in rows}

    def live_instances(self) -> list[Instance]:
        table = network_instances.c
        query = self._select(_INSTANCES, table.state != InstanceState.ENDED.value)
        return self._all(_INSTANCES, query.order_by(table.joined_at, table.id))

    def serving_agents(self, heard_since: datetime) -> list[AgentName]:
        table = network_instances.c
        query = (
            select(table.agent)
            .distinct()
            .where(
                table.network == self._network,
                table.state == InstanceState.ACTIVE.value,
                or_(table.person, table.last_seen_at >= heard_since),
            )
        )
        return [AgentName(name) for name in self._connection.scalars(query.order_by(table.agent))]

    def declaring_instances(self) -> list[Instance]:
        table = network_instances.c
        # () is the stored form of none.
        query = self._select(_INSTANCES, table.state != InstanceState.ENDED.value, table.capabilities != ())
        return self._all(_INSTANCES, query.order_by(table.joined_at, table.id))

    def instance(self, instance_id: InstanceId) -> Instance | None:
        return self._one(_INSTANCES, network_instances.c.id == instance_id)

    def task(self, task_id: TaskId) -> Task | None:
        return self._one(_TASKS, network_tasks.c.id == task_id)

    def task_of_call(self, instance_id: InstanceId, call_id: str) -> Task | None:
        table = network_tasks.c
        return self._one(_TASKS, table.creator_instance == instance_id, table.call_id == call_id)

    def history(self, task_id: TaskId) -> list[HistoryEntry]:
        table = network_task_history.c
        return self._all(_HISTORY, self._select(_HISTORY, table.task_id == task_id).order_by(table.number))

    def recent_tasks(self, limit: int, *, resource: str | None = None) -> list[Task]:
        table = network_tasks.c
        query = self._select(_TASKS).order_by(table.updated_at.desc(), table.id.desc()).limit(limit)
        return self._all(_TASKS, query if resource is None else query.where(table.resource == resource))

    def tasks_in(self, states: Collection[TaskState], limit: int) -> list[Task]:
        table = network_tasks.c
        query = self._select(_TASKS, table.state.in_([one.value for one in states]))
        return self._all(_TASKS, query.order_by(table.updated_at.desc(), table.id.desc()).limit(limit))

    def open_tasks(self) -> list[Task]:
        return self._tasks(network_tasks.c.state.not_in(_TERMINAL))

    def pending_tasks(self, wanted: Collection[str], limit: int, *, skip: int = 0) -> list[Task]:
        table = network_tasks.c
        query = self._select(_TASKS, table.state == TaskState.PENDING.value, table.wanted.in_(wanted))
        return self._all(_TASKS, query.order_by(table.created_at, table.id).limit(limit).offset(skip))

    def offered_tasks(self) -> list[Task]:
        return self._tasks(network_tasks.c.state == TaskState.OFFERED.value)

    def tasks_held_by(self, instance_id: InstanceId) -> list[Task]:
        table = network_tasks.c
        return self._tasks(table.assignee_instance == instance_id, table.state.not_in(_TERMINAL))

    def claim(self, claim_id: ClaimId) -> Claim | None:
        return self._one(_CLAIMS, network_claims.c.id == claim_id)

    def active_claims(self, now: datetime) -> list[Claim]:
        table = network_claims.c
        query = self._select(_CLAIMS, table.ended_at.is_(None), table.expires_at > now)
        return self._all(_CLAIMS, query.order_by(table.created_at, table.id))

    def artifacts_of_task(self, task_id: TaskId) -> list[NetworkArtifact]:
        table = network_artifacts.c
        query = self._select(_ARTIFACTS, table.task_id == task_id)
        return self._all(_ARTIFACTS, query.order_by(table.created_at, table.id))

    def artifact_of_call(self, instance_id: InstanceId, call_id: str) -> NetworkArtifact | None:
        table = network_artifacts.c
        return self._one(_ARTIFACTS, table.instance_id == instance_id, table.call_id == call_id)

    def thread(self, thread_id: ThreadId) -> Thread | None:
        return self._one(_THREADS, network_threads.c.id == thread_id)

    def threads(self, limit: int) -> list[Thread]:
        table = network_threads.c
        query = self._select(_THREADS).order_by(table.created_at.desc(), table.id.desc()).limit(limit)
        return self._all(_THREADS, query)

    def messages_of_thread(self, thread_id: ThreadId) -> list[Message]:
        table = network_messages.c
        query = self._select(_MESSAGES, table.thread_id == thread_id)
        return self._all(_MESSAGES, query.order_by(table.sequence, table.created_at, table.id))

    def thread_length(self, thread_id: ThreadId) -> int:
        table = network_threads.c
        query = select(table.messages).where(table.network == self._network, table.id == thread_id)
        return self._connection.scalar(query) or 0

    def recent_messages(self, limit: int) -> list[Message]:
        table = network_messages.c
        query = self._select(_MESSAGES).order_by(table.created_at.desc(), table.id.desc())
        return self._all(_MESSAGES, query.limit(limit))

    def recent_changes(self, limit: int) -> list[tuple[TaskId, HistoryEntry]]:
        query = self._select(_HISTORY).order_by(network_task_history.c.number.desc()).limit(limit)
        rows = self._connection.execute(query).mappings().all()
        return [(TaskId(row["task_id"]), _HISTORY.value(row)) for row in rows]

    def recent_traffic(self, limit: int) -> list[tuple[AgentName, AgentName]]:
        sent, copies = network_messages.c, network_deliveries.c
        same = and_(sent.network == copies.network, sent.id == copies.message_id)
        query = (
            select(sent.sender, copies.agent)
            .join_from(network_deliveries, network_messages, same)
            .where(copies.network == self._network)
            .order_by(copies.number.desc())
            .limit(limit)
        )
        return [(AgentName(row.sender), AgentName(row.agent)) for row in self._connection.execute(query)]

    def message(self, message_id: MessageId) -> Message | None:
        return self._one(_MESSAGES, network_messages.c.id == message_id)

    def message_of_call(self, instance_id: InstanceId, call_id: str) -> Message | None:
        table = network_messages.c
        return self._one(_MESSAGES, table.sender_instance == instance_id, table.call_id == call_id)

    def request(self, request_id: RequestId) -> CollaborationRequest | None:
        return self._one(_REQUESTS, network_requests.c.id == request_id)

    def request_of_call(self, instance_id: InstanceId, call_id: str) -> CollaborationRequest | None:
        table = network_requests.c
        return self._one(_REQUESTS, table.requester_instance == instance_id, table.call_id == call_id)

    def request_of_thread(self, thread_id: ThreadId) -> CollaborationRequest | None:
        return self._one(_REQUESTS, network_requests.c.thread_id == thread_id)

    def unanswered_requests(self, agent: AgentName, since: datetime) -> list[CollaborationRequest]:
        table = network_requests.c
        query = self._select(
            _REQUESTS,
            or_(table.requester == agent, table.target == agent),
            table.answered_at.is_(None),
            table.expires_at > since,
        )
        return self._all(_REQUESTS, query.order_by(table.created_at, table.id))

    def deliveries_of_message(self, message_id: MessageId) -> list[Delivery]:
        return self._deliveries(network_deliveries.c.message_id == message_id)

    def deliveries_of_task(self, task_id: TaskId) -> list[Delivery]:
        return self._deliveries(network_deliveries.c.task_id == task_id)

    def open_deliveries(self, actor: Actor, limit: int) -> list[Delivery]:
        table = network_deliveries.c
        held_for_this_call = and_(
            table.state == DeliveryState.HELD.value,
            table.held_by == actor.instance_id,
            table.held_call == actor.call_id,
        )
        return self._deliveries(
            table.agent == actor.agent,
            table.sender_instance != actor.instance_id,
            or_(table.instance_id.is_(None), table.instance_id == actor.instance_id),
            or_(table.state == DeliveryState.WAITING.value, held_for_this_call),
            limit=limit,
        )

    def undelivered(self, instance_id: InstanceId) -> list[Delivery]:
        table = network_deliveries.c
        return self._deliveries(
            table.state.in_(_UNDELIVERED),
            or_(table.instance_id == instance_id, table.held_by == instance_id),
        )

    def undelivered_to(self, agent: AgentName) -> list[Delivery]:
        table = network_deliveries.c
        return self._deliveries(table.agent == agent, table.state.in_(_UNDELIVERED))

    # --- changing ----------------------------------------------------------------------------------------

    def create(self, at: datetime) -> None:
        row = {"name": self._network, "created_at": at}
        insert_if_absent(self._connection, networks, row, key=["name"])

    def put_definition(self, definition: AgentDefinition) -> None:
        self._put(_AGENTS, definition, revision=self._next_profiles_revision())

    def delete_definition(self, name: AgentName) -> None:
        table = network_agents.c
        self._connection.execute(
            delete(network_agents).where(table.network == self._network, table.name == name)
        )
        self._next_profiles_revision()

    def put_instance(self, instance: Instance) -> None:
        self._put(_INSTANCES, instance)

    def put_launch(self, launch: AgentLaunch) -> None:
        self._put(_LAUNCHES, launch)

    def put_task(self, change: TaskChange) -> None:
        task = change.task
        self._put(_TASKS, task, wanted=wanted_key(task.target, task.resource))
        entry = {**_HISTORY.row(self._network, change.entry), "task_id": change.task.id}
        self._connection.execute(insert(network_task_history).values(entry))

    def count_below(self, task_ids: Collection[TaskId]) -> None:
        table = network_tasks.c
        self._connection.execute(
            update(network_tasks)
            .where(table.network == self._network, table.id.in_(list(task_ids)))
            .values(tasks_below=table.tasks_below + 1)
        )

    def put_claim(self, claim: Claim) -> None:
        self._put(_CLAIMS, claim)

    def end_claims(self, instance_id: InstanceId, at: datetime) -> None:
        table = network_claims.c
        self._connection.execute(
            update(network_claims)
            .where(
                table.network == self._network,
                table.instance_id == instance_id,
                table.ended_at.is_(None),
                table.expires_at > at,
            )
            .values(ended_at=at)
        )

    def add_artifact(self, artifact: NetworkArtifact) -> None:
        self._put(_ARTIFACTS, artifact)

    def put_thread(self, thread: Thread) -> None:
        self._put(_THREADS, thread)

    def add_message(self, message: Message) -> None:
        if self._signer is not None:
            message = self._signed(message, self._signer)
        self._put(_MESSAGES, message)

    def put_request(self, request: CollaborationRequest) -> None:
        self._put(_REQUESTS, request)

    def put_deliveries(self, deliveries: Sequence[Delivery]) -> None:
        for delivery in deliveries:
            self._put(_DELIVERIES, delivery)

    def _next_profiles_revision(self) -> int:
        table = networks.c
        grow = (
            update(networks)
            .where(table.name == self._network)
            .values(profiles_revision=table.profiles_revision + 1)
        )
        return self._connection.scalar(grow.returning(table.profiles_revision)) or 0

    def _signed(self, message: Message, signer: MessageSigner) -> Message:
        """The thread's next message. Counted in the thread, so that a cut end shows."""
        table = network_threads.c
        same = and_(table.network == self._network, table.id == message.thread_id)
        count = update(network_threads).where(same).values(messages=table.messages + 1)
        number = self._connection.scalar(count.returning(table.messages)) or 0
        message = replace(message, sequence=number, key_id=signer.key_id)
        return replace(message, signature=signer.sign(signed_bytes(self._network, message)))

    # --- statements --------------------------------------------------------------------------------------

    def _select(self, kind: _Kind[Any], *conditions: ColumnElement[bool]) -> Select[Any]:
        return select(kind.table).where(kind.table.c.network == self._network, *conditions)

    def _all(self, kind: _Kind[T], query: Select[Any]) -> list[T]:
        return [kind.value(row) for row in self._connection.execute(query).mappings()]

    def _one(self, kind: _Kind[T], *conditions: ColumnElement[bool]) -> T | None:
        row = self._connection.execute(self._select(kind, *conditions)).mappings().one_or_none()
        return None if row is None else kind.value(row)

    def _deliveries(self, *conditions: ColumnElement[bool], limit: int | None = None) -> list[Delivery]:
        query = self._select(_DELIVERIES, *conditions).order_by(network_deliveries.c.number).limit(limit)
        return self._all(_DELIVERIES, query)

    def _tasks(self, *conditions: ColumnElement[bool]) -> list[Task]:
        table = network_tasks.c
        return self._all(_TASKS, self._select(_TASKS, *conditions).order_by(table.created_at, table.id))

    def _put(self, kind: _Kind[T], value: T, **derived: Any) -> None:
        row = kind.row(self._network, value) | derived
        same = and_(kind.table.c.network == self._network, kind.table.c[kind.key] == row[kind.key])
        # The network is locked: nobody adds the row between the two statements.
        if self._connection.execute(update(kind.table).where(same).values(row)).rowcount == 0:
            self._connection.execute(insert(kind.table).values(row))

"""A network as its operator sees it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from orchestrator.domain.network.claims import Claim
from orchestrator.domain.network.identities import MessageId, TaskId, ThreadId
from orchestrator.domain.network.refusals import not_found
from orchestrator.domain.network.task_states import TaskState
from orchestrator.domain.network.tasks import Task
from orchestrator.domain.network.threads import Delivery, Message, Thread
from orchestrator.ports.network import NetworkReader, NetworkStore
from orchestrator.services.network_members import Refused, network_name
from orchestrator.services.network_tasks import TaskRecord
from tool_registry.clock import Clock

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NetworkStatus:
    """A network in numbers.

    Attributes:
        available: agents that can be given work now.
        undelivered: copies of messages and offers on their way.
    """

    network: str
    agents: int
    available: int
    tasks: Mapping[TaskState, int]
    blocked: Sequence[Task]
    claims: int
    undelivered: int


@dataclass(frozen=True, slots=True)
class ThreadRecord:
    """A thread with its messages, oldest first, and each message's copies."""

    thread: Thread
    messages: list[Message]
    copies: Mapping[MessageId, list[Delivery]]


class NetworkOverview:
    """Reads a network without being in it.

    Args:
        store: where networks are kept.
        clock: tells which claims hold.

    Raises:
        Refused: from every method: `not_found`, `invalid_name`.
    """

    def __init__(self, store: NetworkStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def status(self, network: str) -> NetworkStatus:
        """The network in numbers."""
        now = self._clock.now()

        def look(reader: NetworkReader) -> NetworkStatus:
            agents = reader.definitions()
            available = {one.agent for one in reader.live_instances() if one.available(now)}
            return NetworkStatus(
                network=network,
                agents=len(agents),
                available=len(available),
                tasks=reader.task_counts(),
                blocked=reader.tasks_in([TaskState.BLOCKED], 20),
                claims=len(reader.active_claims(now)),
                undelivered=sum(len(reader.undelivered_to(one.name)) for one in agents),
            )

        return await self._store.read(network_name(network), there(network, look))

    async def threads(self, network: str, limit: int) -> list[Thread]:
        """Threads, the youngest first."""
        return await self._store.read(
            network_name(network), there(network, lambda reader: reader.threads(limit))
        )

    async def thread(self, network: str, thread_id: str) -> ThreadRecord:
        """One thread."""

        def look(reader: NetworkReader) -> ThreadRecord:
            thread = known_thread(reader, thread_id)
            messages = reader.messages_of_thread(thread.id)
            copies = {one.id: reader.deliveries_of_message(one.id) for one in messages}
            return ThreadRecord(thread, messages, copies)

        return await self._store.read(network_name(network), there(network, look))

    async def tasks(self, network: str, states: Collection[TaskState], limit: int) -> list[Task]:
        """Tasks, those changed last first; of these states, when some are given."""
        return await self._store.read(
            network_name(network),
            there(
                network,
                lambda reader: reader.tasks_in(states, limit) if states else reader.recent_tasks(limit),
            ),
        )

    async def task(self, network: str, task_id: str) -> TaskRecord:
        """One task with its history and artifacts."""

        def look(reader: NetworkReader) -> TaskRecord:
            task = reader.task(TaskId(task_id))
            if task is None:
                raise Refused(not_found("task", task_id))
            return TaskRecord(task, reader.history(task.id), reader.artifacts_of_task(task.id))

        return await self._store.read(network_name(network), there(network, look))

    async def claims(self, network: str) -> list[Claim]:
        """Claims that hold now, oldest first."""
        now: datetime = self._clock.now()
        return await self._store.read(
            network_name(network), there(network, lambda reader: reader.active_claims(now))
        )


def known_thread(reader: NetworkReader, thread_id: str) -> Thread:
    """A thread of the network.

    Raises:
        Refused: `not_found`.
    """
    thread = reader.thread(ThreadId(thread_id))
    if thread is None:
        raise Refused(not_found("thread", thread_id))
    return thread


def there(network: str, look: Callable[[NetworkReader], T]) -> Callable[[NetworkReader], T]:
    """`look`, once the network was found to be there."""

    def checked(reader: NetworkReader) -> T:
        if not reader.exists():
            raise Refused(not_found("network", network))
        return look(reader)

    return checked

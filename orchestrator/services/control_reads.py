"""What representatives read: networks as they stand, from above instead of from within."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from orchestrator.domain.network.discovery import candidates
from orchestrator.domain.network.identities import NetworkName, TaskId, ThreadId
from orchestrator.domain.network.refusals import not_found
from orchestrator.domain.network.resources import resource_key
from orchestrator.domain.network.rights import Right
from orchestrator.domain.network.task_states import TaskState
from orchestrator.domain.network.tasks import HistoryEntry, Task
from orchestrator.domain.network.threads import Message
from orchestrator.ports.network import NetworkReader, NetworkStore
from orchestrator.services import network_views as views
from orchestrator.services.control_access import Acting, ControlAccess
from orchestrator.services.network_members import Refused, accepted
from orchestrator.services.network_tasks import TaskRecord
from tool_registry.clock import Clock

T = TypeVar("T")
Params = dict[str, Any]
_TRAFFIC = 1_000
_TASKS = 1_000


class ControlReads:
    """One method a tool; arguments fit the tool's schema.

    Args:
        access: who may what.
        store: the networks.
        clock: tells who is available.
    """

    def __init__(self, access: ControlAccess, store: NetworkStore, clock: Clock) -> None:
        self._access = access
        self._store = store
        self._clock = clock

    async def whoami(self, acting: Acting, _params: Params) -> dict[str, Any]:
        """`control_whoami`."""
        return {
            "name": acting.name,
            "person": acting.representative.person,
            "active_network": acting.representative.active_network,
            "networks": _networks(acting),
        }

    async def list_networks(self, acting: Acting, _params: Params) -> dict[str, Any]:
        """`control_list_networks`."""
        return {"active_network": acting.representative.active_network, "networks": _networks(acting)}

    async def use_network(self, acting: Acting, params: Params) -> dict[str, Any]:
        """`control_use_network`."""
        network = await self._access.use(acting, params["networkId"])
        return {"active_network": network, "rights": [right.value for right in acting.rights[network]]}

    async def network_status(self, acting: Acting, params: Params) -> dict[str, Any]:
        """`control_network_status`."""
        network, now = _observed(acting, params), self._clock.now()

        def look(reader: NetworkReader) -> dict[str, Any]:
            instances = reader.live_instances()
            states = Counter(task.state.value for task in reader.open_tasks())
            return {
                "network": network,
                "agents": len(reader.definitions()),
                "instances": len(instances),
                "available": sum(one.available(now) for one in instances),
                "open_tasks": [{"state": state, "count": states[state]} for state in sorted(states)],
                "claims": len(reader.active_claims(now)),
            }

        return await self._store.read(network, look)

    async def list_agents(self, acting: Acting, params: Params) -> dict[str, Any]:
        """`control_list_agents`, and with what to look for `control_find_agents`."""
        network, now = _observed(acting, params), self._clock.now()
        key = accepted(resource_key(params["resourceKey"])) if "resourceKey" in params else None

        def look(reader: NetworkReader) -> list[dict[str, Any]]:
            found = candidates(
                reader.definitions(),
                reader.live_instances(),
                now,
                resource=key,
                action=params.get("action"),
            )
            return [views.candidate_view(one, now) for one in found]

        return {"network": network, "agents": await self._store.read(network, look)}

    async def list_tasks(self, acting: Acting, params: Params) -> dict[str, Any]:
        """`control_list_tasks`."""
        status, limit = params.get("status"), int(params.get("limit", 50))
        return await self._tasks(acting, params, lambda task: status in {None, task.state.value}, limit=limit)

    async def list_blocked(self, acting: Acting, params: Params) -> dict[str, Any]:
        """`control_list_blocked`."""
        stuck = {TaskState.BLOCKED, TaskState.PENDING}
        return await self._tasks(acting, params, lambda task: task.state in stuck, limit=_TASKS)

    async def _tasks(
        self, acting: Acting, params: Params, wanted: Callable[[Task], bool], *, limit: int
    ) -> dict[str, Any]:
        network = _observed(acting, params)
        tasks = await self._store.read(network, lambda reader: reader.recent_tasks(_TASKS))
        shown = [views.brief_task_view(task) for task in tasks if wanted(task)]
        return {"network": network, "tasks": shown[:limit]}

    async def task_status(self, acting: Acting, params: Params) -> dict[str, Any]:
        """`control_task_status`."""
        task_id = TaskId(params["taskId"])

        def look(reader: NetworkReader) -> TaskRecord | None:
            task = reader.task(task_id)
            if task is None:
                return None
            return TaskRecord(task, reader.history(task.id), reader.artifacts_of_task(task.id))

        network, record = await self._find(acting, "task", task_id, look)
        return {"network": network, **views.task_record_view(record)}

    async def get_thread(self, acting: Acting, params: Params) -> dict[str, Any]:
        """`control_get_thread`."""
        thread_id = ThreadId(params["threadId"])

        def look(reader: NetworkReader) -> dict[str, Any] | None:
            thread = reader.thread(thread_id)
            if thread is None:
                return None
            return {
                "thread_id": thread.id,
                "subject": thread.subject,
                "participants": [views.who_view(one.agent, one.instance_id) for one in thread.participants],
                "created_at": views.time_view(thread.created_at),
                "messages": [views.message_view(one) for one in reader.messages_of_thread(thread.id)],
            }

        network, thread = await self._find(acting, "thread", thread_id, look)
        return {"network": network, **thread}

    async def get_history(self, acting: Acting, params: Params) -> dict[str, Any]:
        """`control_get_history`."""
        network, limit = _observed(acting, params), int(params.get("limit", 50))

        def look(reader: NetworkReader) -> list[dict[str, Any]]:
            entries = [_message_entry(one) for one in reader.recent_messages(limit)]
            entries += [_task_entry(*one) for one in reader.recent_changes(limit)]
            return sorted(entries, key=lambda one: one["at"], reverse=True)[:limit]

        return {"network": network, "entries": await self._store.read(network, look)}

    async def get_graph(self, acting: Acting, params: Params) -> dict[str, Any]:
        """`control_get_graph`."""
        network, now = _observed(acting, params), self._clock.now()

        def look(reader: NetworkReader) -> dict[str, Any]:
            instances = reader.live_instances()
            messages = Counter(reader.recent_traffic(_TRAFFIC))
            tasks = Counter(
                (task.creator, to)
                for task in reader.recent_tasks(_TASKS)
                if (to := task.assignee or task.target.agent) is not None
            )
            return {
                "nodes": [
                    {
                        "name": one.name,
                        "kind": one.kind.value,
                        "groups": list(one.groups),
                        "instances": sum(each.agent == one.name for each in instances),
                        "available": any(
                            each.agent == one.name and each.available(now) for each in instances
                        ),
                    }
                    for one in reader.definitions()
                ],
                "edges": [*_edges("message", messages), *_edges("task", tasks)],
            }

        return {"network": network, **await self._store.read(network, look)}

    async def _find(
        self, acting: Acting, kind: str, wanted: str, look: Callable[[NetworkReader], T | None]
    ) -> tuple[NetworkName, T]:
        """The thing and its network, of all those that the representative may look into."""
        for network in acting.within(Right.OBSERVE):
            found = await self._store.read(network, look)
            if found is not None:
                return network, found
        raise Refused(not_found(kind, wanted))


def _observed(acting: Acting, params: Params) -> NetworkName:
    return acting.network(params.get("networkId"), Right.OBSERVE)


def _networks(acting: Acting) -> list[dict[str, Any]]:
    return [
        {
            "network": network,
            "rights": [right.value for right in rights],
            "active": network == acting.representative.active_network,
        }
        for network, rights in acting.rights.items()
    ]


def _edges(kind: str, counts: Counter[tuple[Any, Any]]) -> Sequence[dict[str, Any]]:
    return [
        {"from": sender, "to": to, "kind": kind, "count": counts[sender, to]} for sender, to in sorted(counts)
    ]


def _message_entry(message: Message) -> dict[str, Any]:
    return {
        "at": views.time_view(message.created_at),
        "kind": message.kind.value,
        "by": views.who_view(message.sender, message.sender_instance),
        "text": message.body,
        "thread_id": message.thread_id,
        "task_id": message.task_id,
        "state": None,
    }


def _task_entry(task_id: TaskId, entry: HistoryEntry) -> dict[str, Any]:
    return {
        "at": views.time_view(entry.at),
        "kind": "task",
        "by": views.who_view(entry.agent, entry.instance_id) if entry.agent else None,
        "text": entry.reason,
        "thread_id": None,
        "task_id": task_id,
        "state": entry.state.value,
    }

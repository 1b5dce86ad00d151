"""What waits for agents that are started on demand, and what such a job is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from orchestrator.domain.network.agents import AgentDefinition
from orchestrator.domain.network.identities import AgentName, TaskId
from orchestrator.domain.network.offers import need_of
from orchestrator.domain.network.routing import served_keys
from orchestrator.domain.network.tasks import Task
from orchestrator.domain.network.threads import DeliveryState, Message, MessageKind
from orchestrator.ports.network import NetworkReader
from orchestrator.services.network_push import quoted

_TOLD_ITEMS = 10
_TOLD_CHARS = 2_000
_LOOKED_AT = 50


@dataclass(slots=True)
class Waiting:
    """What waits for one agent, oldest first; of many tasks only the first ones are looked at."""

    tasks: list[Task] = field(default_factory=list[Task])
    asks: list[Message] = field(default_factory=list[Message])

    @property
    def since(self) -> datetime:
        """When the oldest of it came."""
        return min([one.created_at for one in self.tasks] + [one.created_at for one in self.asks])

    def __bool__(self) -> bool:
        return bool(self.tasks or self.asks)


def absent(reader: NetworkReader) -> list[AgentDefinition]:
    """Agents that are to be started when work waits, and that nobody serves now."""
    wanted = [one for one in reader.definitions() if one.launch.autostart]
    if not wanted:
        return []
    served = {one.agent for one in reader.live_instances()}
    return [one for one in wanted if one.name not in served]


def waiting_for(reader: NetworkReader, agents: Sequence[AgentDefinition]) -> dict[AgentName, Waiting]:
    """What only these agents could take on; a task that several could goes to the first by name."""
    found = {one.name: Waiting() for one in agents}
    taken: set[TaskId] = set()
    for agent in agents:
        tasks = [
            task
            for task in reader.pending_tasks(served_keys(agent, ()), _LOOKED_AT)
            if task.id not in taken and agent.name not in need_of(task).not_agents
        ]
        found[agent.name].tasks = tasks
        taken |= {task.id for task in tasks}
    for name, waiting in found.items():
        for copy in reader.undelivered_to(name):
            message = None if copy.message_id is None else reader.message(copy.message_id)
            if message is None or copy.instance_id is not None or copy.state is not DeliveryState.WAITING:
                continue
            if message.kind is MessageKind.ASK:
                waiting.asks.append(message)
    return found


def launch_task(agent: AgentDefinition, waiting: Waiting) -> str:
    """The task of a job that is started for an agent: what waits, quoted, and how to take it."""
    told = [_told_task(one) for one in waiting.tasks] + [_told_ask(one) for one in waiting.asks]
    more = len(told) - _TOLD_ITEMS
    rest = f"\n\n{more} more wait behind these." if more > 0 else ""
    return (
        f"You are {agent.name}, and you were started because work waits for you in the agent network.\n\n"
        + "\n\n".join(told[:_TOLD_ITEMS])
        + rest
        + "\n\nIt comes to you as messages and offers, or from network_inbox. Accept each task with "
        "network_task_update, answer each ask with network_reply, and end when network_inbox is empty."
    )


def _told_task(task: Task) -> str:
    return f"Task {task.id} from agent {task.creator}. Its words:\n{_cut(task.objective)}"


def _told_ask(message: Message) -> str:
    return f"Ask in thread {message.thread_id} from agent {message.sender}. Its words:\n{_cut(message.body)}"


def _cut(text: str) -> str:
    return quoted(text if len(text) <= _TOLD_CHARS else text[:_TOLD_CHARS] + " [cut; the whole comes to you]")

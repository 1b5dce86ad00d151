"""An agent with what concerns it, as operators see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.domain.network.agents import (
    AgentDefinition,
    Instance,
)
from orchestrator.domain.network.identities import AgentName
from orchestrator.domain.network.refusals import not_found
from orchestrator.domain.network.tasks import Task
from orchestrator.domain.network.threads import Delivery
from orchestrator.ports.network import NetworkReader
from orchestrator.services.network_members import Refused


@dataclass(frozen=True, slots=True)
class AgentRecord:
    """An agent, who serves it, and what waits for it.

    Attributes:
        instances: that have not ended.
        tasks: unfinished ones that it holds or that are for it.
        mail: copies of messages that it has not received.
    """

    definition: AgentDefinition
    instances: list[Instance]
    tasks: list[Task]
    mail: list[Delivery]

    @property
    def work(self) -> str:
        """What would be left undone without it; "" for nothing."""
        jobs = [one for one in self.instances if not one.person]
        counts = ((jobs, "running instance"), (self.tasks, "unfinished task"), (self.mail, "unread message"))
        return ", ".join(f"{len(of)} {what}{'s' if len(of) > 1 else ''}" for of, what in counts if of)


def agent_record(reader: NetworkReader, agent: AgentDefinition) -> AgentRecord:
    """An agent with what concerns it."""
    return _record(reader, agent, reader.live_instances(), reader.open_tasks())


def agent_records(reader: NetworkReader) -> list[AgentRecord]:
    """Every agent of a network, by name."""
    instances, tasks = reader.live_instances(), reader.open_tasks()
    return [_record(reader, one, instances, tasks) for one in reader.definitions()]


def _record(
    reader: NetworkReader, agent: AgentDefinition, instances: Sequence[Instance], tasks: Sequence[Task]
) -> AgentRecord:
    return AgentRecord(
        agent,
        [one for one in instances if one.agent == agent.name],
        [one for one in tasks if agent.name in {one.assignee, one.target.agent}],
        [one for one in reader.undelivered_to(agent.name) if one.message_id is not None],
    )


def known_agent(reader: NetworkReader, name: AgentName) -> AgentDefinition:
    """The agent of a name.

    Raises:
        Refused: `not_found`.
    """
    found = reader.definition(name)
    if found is None:
        raise Refused(not_found("agent", name))
    return found

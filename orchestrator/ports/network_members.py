"""What is kept of a network's agents and the instances that serve them; parts of `NetworkStore`."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from orchestrator.domain.network.agents import AgentDefinition, Instance
from orchestrator.domain.network.identities import AgentName, InstanceId
from orchestrator.domain.network.launches import AgentLaunch


class MembersReader(Protocol):
    """What one network has of them."""

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


class MembersWriter(Protocol):
    """Changes of them in one network; `put_*` stores a new row or replaces the one of the same id."""

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

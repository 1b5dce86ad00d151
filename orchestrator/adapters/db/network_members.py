"""A network's agents, their launches, and their instances as rows."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import delete, or_, select, update

from orchestrator.adapters.db.network_rows import Kind, Rows
from orchestrator.adapters.db.tables_network import (
    network_agents,
    network_instances,
    network_launches,
    networks,
)
from orchestrator.domain.network.agents import AgentDefinition, Instance, InstanceState
from orchestrator.domain.network.identities import AgentName, InstanceId
from orchestrator.domain.network.launches import AgentLaunch

_AGENTS = Kind(network_agents, AgentDefinition, "name")
_INSTANCES = Kind(network_instances, Instance)
_LAUNCHES = Kind(network_launches, AgentLaunch, "agent")


class MemberRows(Rows):
    """What `ports/network_members.py` asks for, within one transaction."""

    def definitions(self) -> list[AgentDefinition]:
        return self.all(_AGENTS, self.select(_AGENTS).order_by(network_agents.c.name))

    def definition(self, name: AgentName) -> AgentDefinition | None:
        return self.one(_AGENTS, network_agents.c.name == name)

    def profiles_revision(self) -> int:
        query = select(networks.c.profiles_revision).where(networks.c.name == self.network)
        return self.connection.scalar(query) or 0

    def agent_names(self) -> list[AgentName]:
        table = network_agents.c
        query = select(table.name).where(table.network == self.network).order_by(table.name)
        return [AgentName(name) for name in self.connection.scalars(query)]

    def definitions_since(self, revision: int) -> list[AgentDefinition]:
        table = network_agents.c
        return self.all(_AGENTS, self.select(_AGENTS, table.revision > revision).order_by(table.name))

    def launch(self, agent: AgentName) -> AgentLaunch | None:
        return self.one(_LAUNCHES, network_launches.c.agent == agent)

    def live_instances(self) -> list[Instance]:
        table = network_instances.c
        query = self.select(_INSTANCES, table.state != InstanceState.ENDED.value)
        return self.all(_INSTANCES, query.order_by(table.joined_at, table.id))

    def serving_agents(self, heard_since: datetime) -> list[AgentName]:
        table = network_instances.c
        query = (
            select(table.agent)
            .distinct()
            .where(
                table.network == self.network,
                table.state == InstanceState.ACTIVE.value,
                or_(table.person, table.last_seen_at >= heard_since),
            )
        )
        return [AgentName(name) for name in self.connection.scalars(query.order_by(table.agent))]

    def declaring_instances(self) -> list[Instance]:
        table = network_instances.c
        # () is the stored form of none.
        query = self.select(_INSTANCES, table.state != InstanceState.ENDED.value, table.capabilities != ())
        return self.all(_INSTANCES, query.order_by(table.joined_at, table.id))

    def instance(self, instance_id: InstanceId) -> Instance | None:
        return self.one(_INSTANCES, network_instances.c.id == instance_id)

    def put_definition(self, definition: AgentDefinition) -> None:
        self.put(_AGENTS, definition, revision=self._next_profiles_revision())

    def delete_definition(self, name: AgentName) -> None:
        table = network_agents.c
        self.connection.execute(
            delete(network_agents).where(table.network == self.network, table.name == name)
        )
        self._next_profiles_revision()

    def put_instance(self, instance: Instance) -> None:
        self.put(_INSTANCES, instance)

    def put_launch(self, launch: AgentLaunch) -> None:
        self.put(_LAUNCHES, launch)

    def _next_profiles_revision(self) -> int:
        table = networks.c
        grow = (
            update(networks)
            .where(table.name == self.network)
            .values(profiles_revision=table.profiles_revision + 1)
        )
        return self.connection.scalar(grow.returning(table.profiles_revision)) or 0

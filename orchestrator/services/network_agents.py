"""The agents of a network: defined, changed and removed by whoever manages them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from orchestrator.domain.network.agents import (
    AgentDefinition,
    AgentKind,
    Instance,
    InstanceState,
    LaunchSettings,
    ManagedBy,
)
from orchestrator.domain.network.identities import AgentName, InstanceId, NetworkName
from orchestrator.domain.network.names import normal_name
from orchestrator.domain.network.refusals import Refusal, not_found
from orchestrator.domain.network.resources import resource_key
from orchestrator.domain.network.tasks import Task
from orchestrator.domain.network.threads import Delivery
from orchestrator.ports.ids import Ids
from orchestrator.ports.network import NetworkReader, NetworkStore, NetworkTransaction
from orchestrator.services.network_departures import end_instance, end_work_of
from orchestrator.services.network_members import Refused, accepted, agent_name, network_name
from orchestrator.services.network_offers import offer_waiting
from tool_registry.clock import Clock

_CHANGE_IT = {
    ManagedBy.FILE: "agents.yaml defines it: change it there",
    ManagedBy.OPERATOR: "an operator added it; use `portside agents update`, or remove it there first",
}


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


class NetworkAgents:
    """Definitions. Each belongs to one manager, and only that one changes it.

    Args:
        store: where networks are kept.
        clock: the time that is written down.
        ids: names the places of people.
    """

    def __init__(self, store: NetworkStore, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids

    async def networks(self) -> list[NetworkName]:
        """Every network, by name."""
        return await self._store.networks()

    async def list(self, network: str) -> list[AgentRecord]:
        """A network's agents, by name.

        Raises:
            Refused: `not_found`, `invalid_name`.
        """

        def look(reader: NetworkReader) -> list[AgentRecord]:
            if not reader.exists():
                raise Refused(not_found("network", network))
            instances, tasks = reader.live_instances(), reader.open_tasks()
            return [_record(reader, one, instances, tasks) for one in reader.definitions()]

        return await self._store.read(network_name(network), look)

    async def get(self, network: str, name: str) -> AgentRecord:
        """One agent.

        Raises:
            Refused: `not_found`, `invalid_name`.
        """
        wanted = agent_name(name)
        return await self._store.read(
            network_name(network), lambda reader: agent_record(reader, known_agent(reader, wanted))
        )

    async def launch_settings(self, network: str, name: str) -> LaunchSettings:
        """How a job for this agent is started; one that nobody defined, or that can't be, has no wishes.

        Raises:
            Refused: `not_served_by_jobs` for a human or a representative.
        """
        wanted, where = normal_name(name), normal_name(network)
        if isinstance(wanted, Refusal) or isinstance(where, Refusal):
            return LaunchSettings()
        found = await self._store.read(
            NetworkName(where), lambda reader: reader.definition(AgentName(wanted))
        )
        if found is not None and found.kind is not AgentKind.WORKER:
            raise Refused(
                Refusal("not_served_by_jobs", f"{wanted!r} is a {found.kind.value}; no job can run as it")
            )
        return LaunchSettings() if found is None else found.launch

    async def add(self, network: str, definition: AgentDefinition) -> AgentRecord:
        """Define an agent; the network comes to be with it. One that nobody manages yet is taken over.

        Raises:
            Refused: `name_taken`, `managed_elsewhere`, `kind_is_fixed`, `invalid_name`, `invalid_resource`.
        """
        wanted = normal_definition(definition)

        def put(tx: NetworkTransaction) -> AgentRecord:
            tx.create(wanted.created_at)
            there = tx.definition(wanted.name)
            if there is not None and there.managed_by is wanted.managed_by is ManagedBy.OPERATOR:
                raise Refused(
                    Refusal(
                        "name_taken", f"there is an agent {wanted.name!r}; change it with `agents update`"
                    )
                )
            return agent_record(tx, self._put(tx, wanted))

        return await self._store.change(network_name(network), put)

    async def update(self, network: str, definition: AgentDefinition) -> AgentRecord:
        """Replace an agent's profile; nobody's becomes the operator's.

        Raises:
            Refused: `not_found`, `managed_elsewhere`, `kind_is_fixed`, `name_taken` by a group.
        """
        wanted = normal_definition(definition)

        def put(tx: NetworkTransaction) -> AgentRecord:
            known_agent(tx, wanted.name)
            return agent_record(tx, self._put(tx, wanted))

        return await self._store.change(network_name(network), put)

    async def remove(self, network: str, name: str, *, force: bool = False) -> None:
        """Forget an agent; its threads, tasks and artifacts stay readable.

        Args:
            network: where it lives.
            name: the agent.
            force: with work at hand: end its instances in the network, cancel the tasks that are for it and
                tell everybody who waits for an answer of it.

        Raises:
            Refused: `not_found`; `managed_elsewhere`; `agent_has_work` without `force`.
        """
        wanted = agent_name(name)

        def forget(tx: NetworkTransaction) -> None:
            there = known_agent(tx, wanted)
            if there.managed_by is ManagedBy.FILE:
                raise Refused(_managed_elsewhere(there))
            work = agent_record(tx, there).work
            if work and not force:
                raise Refused(
                    Refusal(
                        "agent_has_work",
                        f"{wanted!r} has {work}; let it finish, or remove it with --force, which ends them",
                    )
                )
            self._forget(tx, there)

        await self._store.change(network_name(network), forget)

    async def follow(self, network: str, wanted: Sequence[AgentDefinition]) -> list[str]:
        """Bring a network's file-managed agents up to what their file says now.

        Returns:
            A line for each agent that left the file and still has work: it stays until that is done, and
            is not started any more.

        Raises:
            Refused: as `add`; nothing was changed.
        """
        named = [normal_definition(one) for one in wanted]

        def apply(tx: NetworkTransaction) -> list[str]:
            if not named and not tx.exists():
                return []
            tx.create(self._clock.now())
            left = {one.name for one in tx.definitions() if one.managed_by is ManagedBy.FILE}
            left -= {one.name for one in named}
            staying = [line for name in sorted(left) if (line := self._retired(tx, name))]
            for one in named:
                self._put(tx, one)
            return staying

        return await self._store.change(network_name(network), apply)

    def _retired(self, tx: NetworkTransaction, name: AgentName) -> str:
        there = known_agent(tx, name)
        work = agent_record(tx, there).work
        if not work:
            self._forget(tx, there)
            return ""
        if there.launch.autostart:
            tx.put_definition(replace(there, launch=replace(there.launch, autostart=False)))
        return f"{name!r} is not in the file any more and stays until its work is done: {work}"

    def _forget(self, tx: NetworkTransaction, agent: AgentDefinition) -> None:
        now = self._clock.now()
        why = f"agent {agent.name!r} was removed"
        for one in tx.live_instances():
            if one.agent == agent.name:
                end_instance(tx, self._ids, one.id, why, now)
        end_work_of(tx, self._ids, agent.name, why, now)
        tx.delete_definition(agent.name)
        offer_waiting(tx, self._ids, now)

    def _put(self, tx: NetworkTransaction, wanted: AgentDefinition) -> AgentDefinition:
        there = tx.definition(wanted.name)
        if there is not None:
            if there.managed_by not in {ManagedBy.NOBODY, wanted.managed_by}:
                raise Refused(_managed_elsewhere(there))
            if AgentKind.HUMAN in {there.kind, wanted.kind} and there.kind is not wanted.kind:
                raise Refused(
                    Refusal(
                        "kind_is_fixed",
                        f"{there.name!r} is a {there.kind.value} and can't become a {wanted.kind.value};"
                        " remove it and add it anew, or choose another name",
                    )
                )
            wanted = replace(wanted, created_at=there.created_at)
        if wanted != there:
            check_names(tx, wanted)
            tx.put_definition(wanted)
            self._seat(tx, wanted)
            offer_waiting(tx, self._ids, self._clock.now())
        return wanted

    def _seat(self, tx: NetworkTransaction, agent: AgentDefinition) -> None:
        """A human is always there: one instance, which no job makes and none ends."""
        if agent.kind is AgentKind.HUMAN and not any(one.agent == agent.name for one in tx.live_instances()):
            now = self._clock.now()
            place = InstanceId(self._ids.new())
            tx.put_instance(Instance(place, agent.name, None, InstanceState.ACTIVE, now, person=True))


def agent_record(reader: NetworkReader, agent: AgentDefinition) -> AgentRecord:
    """An agent with what concerns it."""
    return _record(reader, agent, reader.live_instances(), reader.open_tasks())


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


def normal_definition(definition: AgentDefinition) -> AgentDefinition:
    """With one spelling of every name and resource.

    Raises:
        Refused: `invalid_name`, `invalid_resource`.
    """
    return replace(
        definition,
        name=agent_name(definition.name),
        groups=tuple(accepted(normal_name(group)) for group in definition.groups),
        responsibilities=tuple(
            duty
            if duty.resource_key is None
            else replace(duty, resource_key=accepted(resource_key(duty.resource_key)))
            for duty in definition.responsibilities
        ),
    )


def check_names(reader: NetworkReader, definition: AgentDefinition) -> None:
    """No name is an agent's and a group's.

    Raises:
        Refused: `name_taken`.
    """
    others = [one for one in reader.definitions() if one.name != definition.name]
    groups = {group for one in others for group in one.groups} | set(definition.groups)
    if definition.name in groups:
        raise Refused(Refusal("name_taken", f"{definition.name!r} is a group's name and can't be an agent's"))
    if clash := {one.name for one in others}.intersection(definition.groups):
        raise Refused(Refusal("name_taken", f"{min(clash)!r} is an agent's name and can't be a group's"))


def register(tx: NetworkTransaction, network: str, definition: AgentDefinition) -> AgentDefinition:
    """Add an agent whose name nobody has.

    Raises:
        Refused: `not_found` for the network; `name_taken`.
    """
    if not tx.exists():
        raise Refused(not_found("network", network))
    if tx.definition(definition.name) is not None:
        raise Refused(Refusal("name_taken", f"{definition.name!r} is the name of another agent or group"))
    check_names(tx, definition)
    tx.put_definition(definition)
    return definition


def made_once(tx: NetworkTransaction, network: str, name: AgentName, at: datetime) -> AgentDefinition:
    """The agent of a name, made with an empty profile unless it is there."""
    return tx.definition(name) or register(tx, network, AgentDefinition(name, at))


def _managed_elsewhere(there: AgentDefinition) -> Refusal:
    return Refusal(
        "managed_elsewhere", f"agent {there.name!r} stays as it is: {_CHANGE_IT[there.managed_by]}"
    )

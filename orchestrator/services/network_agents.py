"""The agents of a network: defined, changed and removed by whoever manages them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

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
from orchestrator.ports.ids import Ids
from orchestrator.ports.network import NetworkReader, NetworkStore, NetworkTransaction
from orchestrator.services.agent_definitions import check_names, normal_definition
from orchestrator.services.agent_records import AgentRecord, agent_record, agent_records, known_agent
from orchestrator.services.network_departures import end_instance, end_work_of
from orchestrator.services.network_members import Refused, agent_name, network_name
from orchestrator.services.network_offers import offer_waiting
from tool_registry.clock import Clock

_CHANGE_IT = {
    ManagedBy.FILE: "agents.yaml defines it: change it there",
    ManagedBy.OPERATOR: "an operator added it; use `portside agents update`, or remove it there first",
}


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
            return agent_records(reader)

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


def _managed_elsewhere(there: AgentDefinition) -> Refusal:
    return Refusal(
        "managed_elsewhere", f"agent {there.name!r} stays as it is: {_CHANGE_IT[there.managed_by]}"
    )

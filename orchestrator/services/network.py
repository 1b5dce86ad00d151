"""The agent network: its agents, and the instances that serve them for a while."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from orchestrator.domain.network.agents import AgentDefinition, AgentKind, Instance, InstanceState
from orchestrator.domain.network.identities import AgentName, InstanceId, NetworkName
from orchestrator.domain.network.refusals import Refusal, not_found
from orchestrator.domain.network.tasks import Task
from orchestrator.ports.ids import Ids
from orchestrator.ports.network import NetworkReader, NetworkStore, NetworkTransaction
from orchestrator.services.agent_definitions import made_once, normal_definition, register
from orchestrator.services.collaboration import Collaboration
from orchestrator.services.network_agents import NetworkAgents
from orchestrator.services.network_claims import NetworkClaims
from orchestrator.services.network_departures import end_instance
from orchestrator.services.network_directory import NetworkDirectory
from orchestrator.services.network_inbox import NetworkInbox
from orchestrator.services.network_mail import NetworkMail
from orchestrator.services.network_members import Refused, agent_name, network_name
from orchestrator.services.network_offers import movable, offer_waiting
from orchestrator.services.network_tasks import NetworkTasks
from orchestrator.services.response_waits import ResponseWaits
from tool_registry.clock import Clock

HEARTBEAT = timedelta(seconds=15)


class NetworkService:
    """Who belongs to a network.

    `agents` defines them; what members do lies in the other attributes.

    Args:
        store: where networks are kept.
        clock: the time that is written down.
        ids: names new things.
    """

    def __init__(self, store: NetworkStore, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self.agents = NetworkAgents(store, clock, ids)
        self.directory = NetworkDirectory(store, clock, ids)
        self.claims = NetworkClaims(store, clock, ids)
        waits = ResponseWaits()
        self.mail = NetworkMail(store, clock, ids, waits)
        self.collaboration = Collaboration(store, self.mail, waits, clock, ids)
        self.inbox = NetworkInbox(store, clock)
        self.tasks = NetworkTasks(store, clock, ids)

    async def ensure_network(self, network: str) -> None:
        """Make a network unless it is there.

        Raises:
            Refused: `invalid_name`.
        """
        now = self._clock.now()
        await self._store.change(network_name(network), lambda tx: tx.create(now))

    async def ensure_agent(self, network: str, name: str) -> AgentDefinition:
        """The agent of a name, made with an empty profile unless it is there.

        Raises:
            Refused: `invalid_name`; `not_found` for the network; `name_taken` by a group.
        """
        wanted, now = agent_name(name), self._clock.now()
        return await self._store.change(network_name(network), lambda tx: made_once(tx, network, wanted, now))

    async def register_agent(self, network: str, definition: AgentDefinition) -> AgentDefinition:
        """Add an agent whose name nobody has; names that differ by case or Unicode form are one name.

        Raises:
            Refused: `name_taken`, `invalid_name`, `invalid_resource`, or `not_found` for the network.
        """
        wanted = normal_definition(definition)
        return await self._store.change(network_name(network), lambda tx: register(tx, network, wanted))

    async def join(self, network: str, agent: str, instance_id: str, job_id: str | None) -> Instance:
        """Add an instance of an agent; the same one again starts anew: what it held unproven waits again.

        It can be given work from its first `heartbeat` on.

        Args:
            network: where its agent lives.
            agent: the agent that it serves.
            instance_id: unique over all networks.
            job_id: None for a session from outside.

        Raises:
            Refused: `not_found` for the agent; `not_a_member` for an instance that has ended.
            AlreadyExists: another network has an instance of this id.
        """
        new = Instance(
            InstanceId(instance_id), agent_name(agent), job_id, InstanceState.STARTING, self._clock.now()
        )
        return await self._store.change(network_name(network), lambda tx: _joined(tx, new))

    async def place(self, network: str, representative: AgentName) -> InstanceId:
        """A representative's lasting place in a network: it can be written to, and is given no work.

        Raises:
            Refused: `not_found` for the network; `name_taken` by one who is no representative.
        """
        now = self._clock.now()
        mine = InstanceId(f"representative:{network}:{representative}")

        def take(tx: NetworkTransaction) -> InstanceId:
            agent = tx.definition(representative) or register(
                tx, network, AgentDefinition(representative, now, kind=AgentKind.REPRESENTATIVE)
            )
            if agent.kind is not AgentKind.REPRESENTATIVE:
                raise Refused(
                    Refusal("name_taken", f"{agent.name!r} is a {agent.kind.value} of network {network!r}")
                )
            there = tx.instance(mine)
            if there is None or not there.live:
                tx.put_instance(Instance(mine, representative, None, InstanceState.STARTING, now))
            return mine

        return await self._store.change(network_name(network), take)

    async def heartbeat(self, instance_id: str) -> None:
        """An instance was heard from; an ended or unknown one stays what it is.

        Cheap to call for every request: it writes at most every 15 seconds.
        """
        network = await self._store.network_of(InstanceId(instance_id))
        if network is None:
            return
        now = self._clock.now()
        instance = await self._store.read(network, lambda reader: reader.instance(InstanceId(instance_id)))
        if instance is None or not _is_due(instance, now):
            return

        def seen(tx: NetworkTransaction) -> None:
            present = tx.instance(instance.id)
            if present is not None and present.live:
                starting = present.state is InstanceState.STARTING
                was_available = present.available(now)
                state = InstanceState.ACTIVE if starting else present.state
                tx.put_instance(replace(present, state=state, last_seen_at=now))
                if not was_available:
                    offer_waiting(tx, self._ids, now)

        await self._store.change(network, seen)

    async def drain(self, instance_id: str) -> None:
        """Give an instance no more work: it is about to end. Unknown and ended ones stay what they are."""
        network = await self._store.network_of(InstanceId(instance_id))
        if network is None:
            return

        def drained(tx: NetworkTransaction) -> None:
            present = tx.instance(InstanceId(instance_id))
            if present is not None and present.live:
                tx.put_instance(replace(present, state=InstanceState.DRAINING))
                offer_waiting(tx, self._ids, self._clock.now())

        await self._store.change(network, drained)

    async def leave(self, instance_id: str, reason: str) -> None:
        """An instance ended: its claims are free, its work goes back, its undelivered mail is its agent's.

        Doing it again, or for an unknown instance, changes nothing.
        """
        network = await self._store.network_of(InstanceId(instance_id))
        if network is not None:
            now = self._clock.now()

            def left(tx: NetworkTransaction) -> None:
                end_instance(tx, self._ids, InstanceId(instance_id), reason, now)
                offer_waiting(tx, self._ids, now)

            await self._store.change(network, left)

    async def end_sessions(self, reason: str) -> None:
        """End every instance that came from outside; jobs, people and representatives stay."""
        for network in await self._store.networks():
            for instance_id in await self._store.read(network, _sessions):
                await self.leave(instance_id, reason)

    async def sweep(self) -> list[Task]:
        """Look at every task that nobody has accepted: time alone changes who can take it.

        Returns:
            Those that changed, of all networks.
        """
        changed: list[Task] = []
        for network in await self._store.networks():
            # Most looks find nothing to do, and then keep nobody from writing.
            if await self._movable_in(network):
                changed += await self._store.change(network, self._offer_waiting)
        return changed

    async def movable(self) -> list[Task]:
        """Tasks that a look would look at, of all networks."""
        return [task for network in await self._store.networks() for task in await self._movable_in(network)]

    async def _movable_in(self, network: NetworkName) -> list[Task]:
        return await self._store.read(network, lambda reader: movable(reader, self._clock.now()))

    def _offer_waiting(self, tx: NetworkTransaction) -> list[Task]:
        return offer_waiting(tx, self._ids, self._clock.now())


def _sessions(reader: NetworkReader) -> list[InstanceId]:
    lasting = {one.name for one in reader.definitions() if one.kind is AgentKind.REPRESENTATIVE}
    return [
        one.id
        for one in reader.live_instances()
        if one.job_id is None and not one.person and one.agent not in lasting
    ]


def _is_due(instance: Instance, now: datetime) -> bool:
    if not instance.live:
        return False
    seen = instance.last_seen_at
    return instance.state is InstanceState.STARTING or seen is None or now - seen >= HEARTBEAT


def _joined(tx: NetworkTransaction, new: Instance) -> Instance:
    if tx.definition(new.agent) is None:
        raise Refused(not_found("agent", new.agent))
    there = tx.instance(new.id)
    if there is None:
        tx.put_instance(new)
        return new
    if there.agent != new.agent or not there.live:
        raise Refused(Refusal("not_a_member", f"instance {new.id!r} has ended or serves another agent"))
    held = [one for one in tx.undelivered(there.id) if one.held_by == there.id]
    tx.put_deliveries([one.returned() for one in held])
    return there

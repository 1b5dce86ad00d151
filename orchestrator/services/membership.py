"""Jobs as members of the agent network."""

from __future__ import annotations

from collections.abc import Collection

from orchestrator.ports.membership import NotTaken, PushedDelivery
from orchestrator.services.network import NetworkService
from orchestrator.services.network_members import Refused
from orchestrator.services.network_push import pushed


class NetworkMembership:
    """`Membership` over the network service."""

    def __init__(self, service: NetworkService) -> None:
        self._service = service

    async def expect(self, network: str, agent: str) -> None:
        """A job as this agent is about to be accepted."""
        await self._service.ensure_network(network)
        await self._service.ensure_agent(network, agent)

    async def join(self, network: str, agent: str, instance_id: str, job_id: str) -> None:
        """A job's worker has registered. Nobody is made here: who is not there was removed meanwhile."""
        try:
            await self._service.join(network, agent, instance_id, job_id)
        except Refused as no:
            gone = f"agent {agent!r} was removed from network {network!r} while the job waited to start"
            raise NotTaken(gone if no.code == "not_found" else no.message) from no

    async def heartbeat(self, instance_id: str) -> None:
        """The worker was heard of."""
        await self._service.heartbeat(instance_id)

    async def leave(self, instance_id: str, reason: str) -> None:
        """The job has ended."""
        await self._service.leave(instance_id, reason)

    async def acknowledge(self, instance_id: str, call_ids: Collection[str]) -> None:
        """The model was shown the results of these inbox calls, and of no other since the last time."""
        await self._service.inbox.acknowledge(instance_id, call_ids)

    async def pushed(self, instance_id: str) -> list[PushedDelivery]:
        """What waits for the job's instance, as text."""
        return [pushed(item) for item in await self._service.inbox.push(instance_id)]

    async def acknowledge_pushed(self, instance_id: str, delivery_ids: Collection[str]) -> None:
        """The worker took these."""
        await self._service.inbox.acknowledge_push(instance_id, delivery_ids)

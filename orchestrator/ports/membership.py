"""What jobs need of the agent network."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from tool_registry.errors import PortsideError


class NotTaken(PortsideError):
    """The network does not take a job's instance, and will not later; the message says why."""

    code = "not_a_member"


@dataclass(frozen=True, slots=True)
class PushedDelivery:
    """A network message or task offer as text for a model.

    Attributes:
        kind: `message` or `task_offer`.
    """

    id: str
    kind: str
    text: str
    thread_id: str | None
    task_id: str | None
    created_at: datetime


class Membership(Protocol):
    """Jobs come and go as instances of an agent."""

    async def expect(self, network: str, agent: str) -> None:
        """A job as this agent is about to be accepted: the network and the agent come to be with it."""
        ...

    async def join(self, network: str, agent: str, instance_id: str, job_id: str) -> None:
        """A job's worker has registered: its instance can be found and reached. Twice is once.

        Raises:
            NotTaken: the agent was removed since the job was accepted, or the instance has ended.
        """
        ...

    async def heartbeat(self, instance_id: str) -> None:
        """The job's worker was heard of: it can be given work. Cheap to call for every request."""
        ...

    async def leave(self, instance_id: str, reason: str) -> None:
        """The job has ended: its claims are freed and its unfinished work goes back. Twice is once."""
        ...

    async def acknowledge(self, instance_id: str, call_ids: Collection[str]) -> None:
        """The model was shown the results of these inbox calls, and of no other since the last time."""
        ...

    async def pushed(self, instance_id: str) -> list[PushedDelivery]:
        """Messages and offers that wait for the instance, oldest first; again until acknowledged."""
        ...

    async def acknowledge_pushed(self, instance_id: str, delivery_ids: Collection[str]) -> None:
        """The worker took these; ids of other things are ignored."""
        ...

"""Agents: the definition that has the name, and the instances that serve it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from orchestrator.domain.network.capabilities import Capability
from orchestrator.domain.network.identities import AgentName, InstanceId

# A backstop: an instance whose end was seen has left already. It must outlast a long model call or command,
# during which a worker has nothing to say.
FRESH = timedelta(minutes=5)


class AgentKind(StrEnum):
    """What serves an agent."""

    WORKER = "worker"
    REPRESENTATIVE = "representative"
    HUMAN = "human"


@dataclass(frozen=True, slots=True)
class Responsibility:
    """What an agent answers for.

    Attributes:
        resource_key: canonical; None is any resource.
        actions: what it does there, such as `review`; none named is no statement about actions.
    """

    resource_key: str | None = None
    actions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LaunchSettings:
    """How an instance is started when one is needed."""

    image: str = ""
    model: str = ""
    mission: str = ""
    autostart: bool = False


@dataclass(frozen=True, slots=True)
class AgentDefinition:
    """An agent: a stable name in one network, and its profile.

    Attributes:
        name: normal (see `names`); unique within the network.
        capabilities: set by its owner; what instances declare never changes them.
    """

    name: AgentName
    created_at: datetime
    kind: AgentKind = AgentKind.WORKER
    summary: str = ""
    description: str = ""
    url: str = ""
    payment_address: str | None = None
    capabilities: tuple[Capability, ...] = ()
    skills: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    version: str = ""
    groups: tuple[str, ...] = ()
    responsibilities: tuple[Responsibility, ...] = ()
    launch: LaunchSettings = field(default_factory=LaunchSettings)

    def answers_for(self, resource: str) -> bool:
        """Whether a (canonical) resource is one of its responsibilities."""
        return any(duty.resource_key == resource for duty in self.responsibilities)


class InstanceState(StrEnum):
    """Where an instance stands."""

    STARTING = "starting"
    ACTIVE = "active"
    DRAINING = "draining"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Instance:
    """One serving job, or one external session.

    Attributes:
        job_id: None for an external session.
        last_seen_at: its last contact; None before the first.
        capabilities: its own declaration, for this mission.
        ended_reason: why it ended; empty while it lives.
    """

    id: InstanceId
    agent: AgentName
    job_id: str | None
    state: InstanceState
    joined_at: datetime
    last_seen_at: datetime | None = None
    capabilities: tuple[Capability, ...] = ()
    ended_at: datetime | None = None
    ended_reason: str = ""

    @property
    def live(self) -> bool:
        """It has not ended."""
        return self.state is not InstanceState.ENDED

    def available(self, now: datetime) -> bool:
        """It can be given work: it is active and was heard from lately."""
        return (
            self.state is InstanceState.ACTIVE
            and self.last_seen_at is not None
            and now - self.last_seen_at <= FRESH
        )

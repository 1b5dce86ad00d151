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


class ManagedBy(StrEnum):
    """Who may change an agent's definition; the first to define it."""

    NOBODY = ""
    FILE = "file"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Skill:
    """Something an agent is good at."""

    name: str
    description: str = ""


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
    """How an instance is started when one is needed.

    Attributes:
        mission: what every instance is told before its task.
        autostart: a job is launched when work waits and none serves the agent.
        allow_hosts: patterns of the hosts that the commands of its jobs may reach.
    """

    image: str = ""
    model: str = ""
    mission: str = ""
    autostart: bool = False
    allow_hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentDefinition:
    """An agent: a stable name in one network, and its profile.

    Attributes:
        name: normal (see `names`); unique within the network.
        capabilities: set by its owner; what instances declare never changes them.
        managed_by: nobody, when it came to be with a job; then whoever defines it first.
    """

    name: AgentName
    created_at: datetime
    kind: AgentKind = AgentKind.WORKER
    summary: str = ""
    description: str = ""
    url: str = ""
    payment_address: str | None = None
    capabilities: tuple[Capability, ...] = ()
    skills: tuple[Skill, ...] = ()
    tags: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    version: str = ""
    groups: tuple[str, ...] = ()
    responsibilities: tuple[Responsibility, ...] = ()
    launch: LaunchSettings = field(default_factory=LaunchSettings)
    managed_by: ManagedBy = ManagedBy.NOBODY

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
        person: a human's one place in the network: it can be given work at any time.
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
    person: bool = False

    @property
    def live(self) -> bool:
        """It has not ended."""
        return self.state is not InstanceState.ENDED

    def available(self, now: datetime) -> bool:
        """It can be given work: it is active and was heard from lately, or is a person."""
        heard = self.last_seen_at is not None and now - self.last_seen_at <= FRESH
        return self.state is InstanceState.ACTIVE and (self.person or heard)

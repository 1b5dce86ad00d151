"""Who acts in a network, and how a rule's no travels from a service to its caller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from orchestrator.domain.network.agents import AgentDefinition, Instance
from orchestrator.domain.network.identities import Actor, AgentName, InstanceId, NetworkName
from orchestrator.domain.network.names import normal_name
from orchestrator.domain.network.refusals import Refusal
from orchestrator.ports.network import NetworkReader
from tool_registry.errors import PortsideError

T = TypeVar("T")


class Refused(PortsideError):
    """A rule said no; nothing was changed."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.code = refusal.code
        self.refusal = refusal


def accepted(value: T | Refusal) -> T:
    """The value of a decision.

    Raises:
        Refused: the decision was no; an open transaction keeps nothing.
    """
    if isinstance(value, Refusal):
        raise Refused(value)
    return value


@dataclass(frozen=True, slots=True)
class Member:
    """The acting instance with the agent it serves."""

    definition: AgentDefinition
    instance: Instance


def network_name(text: str) -> NetworkName:
    """A network's one spelling.

    Raises:
        Refused: `invalid_name`.
    """
    return NetworkName(accepted(normal_name(text)))


def agent_name(text: str) -> AgentName:
    """An agent's one spelling.

    Raises:
        Refused: `invalid_name`.
    """
    return AgentName(accepted(normal_name(text)))


def acting_member(reader: NetworkReader, actor: Actor) -> Member:
    """The actor as the network knows it.

    Raises:
        Refused: `not_a_member`: the instance is unknown here, serves another agent, or has ended.
    """
    instance = reader.instance(actor.instance_id)
    definition = reader.definition(actor.agent)
    if instance is None or definition is None or instance.agent != actor.agent:
        raise Refused(
            Refusal("not_a_member", f"this job is not an instance of {actor.agent!r} in its network")
        )
    if not instance.live:
        raise Refused(
            Refusal("not_a_member", f"this instance of {actor.agent!r} has ended: {instance.ended_reason}")
        )
    return Member(definition, instance)


def live_ids(reader: NetworkReader) -> set[InstanceId]:
    """The instances that have not ended."""
    return {instance.id for instance in reader.live_instances()}

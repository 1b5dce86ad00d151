"""What every definition of an agent has to fit, whoever stores it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from orchestrator.domain.network.agents import (
    AgentDefinition,
)
from orchestrator.domain.network.identities import AgentName
from orchestrator.domain.network.names import normal_name
from orchestrator.domain.network.refusals import Refusal, not_found
from orchestrator.domain.network.resources import resource_key
from orchestrator.ports.network import NetworkReader, NetworkTransaction
from orchestrator.services.network_members import Refused, accepted, agent_name


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

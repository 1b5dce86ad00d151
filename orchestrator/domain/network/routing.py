"""Who a task is offered to: one decision, for a new task and for one that has waited."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from orchestrator.domain.network.agents import AgentDefinition, Instance
from orchestrator.domain.network.identities import AgentName, InstanceId
from orchestrator.domain.network.tasks import Target


@dataclass(frozen=True, slots=True)
class Need:
    """What is looked for.

    Attributes:
        resource: decides only where the target is nobody in particular.
        not_instances: the creator's, and those that declined.
        not_agents: whose work it already is.
    """

    target: Target
    resource: str | None
    not_instances: Collection[InstanceId] = ()
    not_agents: Collection[AgentName] = field(default=frozenset[AgentName]())


@dataclass(frozen=True, slots=True)
class Route:
    """The instances to offer it to, oldest first; and when there are none, why.

    Attributes:
        wanted: the agents that it is for, also those that may not have it.
    """

    instances: tuple[Instance, ...]
    wanted: tuple[AgentName, ...]
    why_none: str


def route(
    need: Need, definitions: Sequence[AgentDefinition], instances: Sequence[Instance], now: datetime
) -> Route:
    """Decide; without a target, those fit that are responsible for the resource."""
    names, who = _wanted(need, definitions)
    wanted = tuple(names)
    able = tuple(
        instance
        for instance in instances
        if instance.agent in wanted
        and instance.agent not in need.not_agents
        and instance.id not in need.not_instances
        and need.target.instance_id in {None, instance.id}
        and instance.available(now)
    )
    if able:
        return Route(able, wanted, "")
    if not who:
        return Route((), wanted, "it names neither a target nor a resource, so nobody can be chosen for it")
    return Route((), wanted, f"{who} is needed and none is available now")


def _wanted(need: Need, definitions: Sequence[AgentDefinition]) -> tuple[list[AgentName], str]:
    target = need.target
    if target.instance_id is not None and target.agent is not None:
        return [target.agent], f"instance {target.instance_id!r}"
    if target.agent is not None:
        return [target.agent], f"another instance of {target.agent!r}"
    if target.group is not None:
        return members_of(definitions, target.group), f"another member of group {target.group!r}"
    if need.resource is not None:
        names = [one.name for one in definitions if one.answers_for(need.resource)]
        return names, f"an agent that is responsible for {need.resource!r}"
    return [], ""


def wanted_key(target: Target, resource: str | None) -> str:
    """What a task waits for, as one text; "" when nothing can be chosen for it."""
    if target.instance_id is not None:
        return f"instance {target.instance_id}"
    if target.agent is not None:
        return f"agent {target.agent}"
    if target.group is not None:
        return f"group {target.group}"
    return f"resource {resource}" if resource is not None else ""


def served_keys(definition: AgentDefinition, instances: Iterable[Instance]) -> list[str]:
    """The `wanted_key` of every task that an agent, with these instances of it, may be offered."""
    duties = {duty.resource_key for duty in definition.responsibilities if duty.resource_key is not None}
    return [
        f"agent {definition.name}",
        *(f"group {group}" for group in definition.groups),
        *(f"resource {key}" for key in sorted(duties)),
        *(f"instance {one.id}" for one in instances),
    ]


def members_of(definitions: Sequence[AgentDefinition], group: str) -> list[AgentName]:
    """The agents of a group, by name."""
    return [definition.name for definition in definitions if group in definition.groups]

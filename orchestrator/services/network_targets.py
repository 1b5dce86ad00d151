"""Whom a message or task is for, and who could take it now."""

from __future__ import annotations

from datetime import datetime

from orchestrator.domain.network.agents import AgentDefinition, Instance
from orchestrator.domain.network.identities import Actor, AgentName, InstanceId
from orchestrator.domain.network.names import normal_name
from orchestrator.domain.network.refusals import Refusal, not_found
from orchestrator.domain.network.tasks import Target
from orchestrator.ports.network import NetworkReader
from orchestrator.services.network_members import Refused


def target_of(reader: NetworkReader, actor: Actor, to_agent: str | None, to_instance: str | None) -> Target:
    """The agent, group or (it wins) instance that was named; nobody in particular when none was.

    Raises:
        Refused: `not_found` in this network; `target_ended`; `self_request`.
    """
    if to_instance is not None:
        return _instance_target(reader, actor, InstanceId(to_instance))
    if to_agent is None:
        return Target()
    name = normal_name(to_agent)
    if isinstance(name, str):
        if reader.definition(AgentName(name)) is not None:
            return Target(agent=AgentName(name))
        if any(name in definition.groups for definition in reader.definitions()):
            return Target(group=name)
    raise Refused(not_found("agent or group", to_agent))


def _instance_target(reader: NetworkReader, actor: Actor, instance_id: InstanceId) -> Target:
    instance = reader.instance(instance_id)
    if instance is None:
        raise Refused(not_found("instance", instance_id))
    if instance.id == actor.instance_id:
        raise Refused(Refusal("self_request", "toInstance is this very instance; name somebody else"))
    if not instance.live:
        raise Refused(
            Refusal(
                "target_ended",
                f"instance {instance_id!r} has ended; use toAgent {instance.agent!r} to reach its agent",
                {"agent": instance.agent},
            )
        )
    return Target(agent=instance.agent, instance_id=instance.id)


def members_of(definitions: list[AgentDefinition], group: str) -> list[AgentName]:
    """The agents of a group, by name."""
    return [definition.name for definition in definitions if group in definition.groups]


def who_can_take(
    reader: NetworkReader, actor: Actor, target: Target, resource: str | None, now: datetime
) -> tuple[list[Instance], str]:
    """The instances that a task can be offered to now, oldest first, and why there are none.

    Without a target these are the instances of the agents that are responsible for the resource.
    """
    definitions = reader.definitions()
    if target.instance_id is not None:
        names, who = [target.agent], f"instance {target.instance_id!r}"
    elif target.agent is not None:
        names, who = [target.agent], f"another instance of {target.agent!r}"
    elif target.group is not None:
        names, who = members_of(definitions, target.group), f"another member of group {target.group!r}"
    elif resource is not None:
        names = [
            one.name for one in definitions if any(d.resource_key == resource for d in one.responsibilities)
        ]
        who = f"an agent that is responsible for {resource!r}"
    else:
        return [], "it names neither a target nor a resource, so nobody can be chosen for it"
    able = [
        instance
        for instance in reader.live_instances()
        if instance.agent in names
        and instance.id != actor.instance_id
        and target.instance_id in {None, instance.id}
        and instance.available(now)
    ]
    return able, "" if able else f"{who} is needed and none is available now"

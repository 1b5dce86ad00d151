"""Whom a message or task is for."""

from __future__ import annotations

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

"""What the network tools answer: plain JSON, snake_case keys, times as ISO 8601 UTC, absent values null."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from orchestrator.domain.network.agents import AgentDefinition, Instance
from orchestrator.domain.network.artifacts import NetworkArtifact
from orchestrator.domain.network.capabilities import Capability
from orchestrator.domain.network.claims import Claim
from orchestrator.domain.network.discovery import Candidate
from orchestrator.domain.network.tasks import Target, Task
from orchestrator.domain.network.threads import DeliveryState, Message, MessageKind
from orchestrator.services.network_directory import Discovery
from orchestrator.services.network_inbox import Inbox, InboxItem
from orchestrator.services.network_mail import Sent
from orchestrator.services.network_members import Member
from orchestrator.services.network_results import TASK_OFFER
from orchestrator.services.network_tasks import TaskRecord

_ONLY_CALLS = "Only network_reply and network_ask calls reach the sender; plain output is not delivered."
_NOTES = {
    MessageKind.ASK: f"Answer with network_reply in this thread. {_ONLY_CALLS}",
    MessageKind.REPLY: f"No answer is needed. {_ONLY_CALLS}",
    MessageKind.NOTICE: f"No answer is needed. {_ONLY_CALLS}",
    MessageKind.STATUS: f"No answer is needed. {_ONLY_CALLS}",
}
_OFFER_NOTE = (
    "Take it with network_task_update status 'accepted', or decline it with 'cancelled' and a reason. "
    f"{_ONLY_CALLS}"
)


def whoami_view(network: str, member: Member) -> dict[str, Any]:
    """`{network, definition, instance}`."""
    return {
        "network": network,
        "definition": _definition(member.definition),
        "instance": {
            "instance_id": member.instance.id,
            "job_id": member.instance.job_id,
            "state": member.instance.state.value,
            "self_declared_capabilities": capability_views(member.instance.capabilities),
        },
    }


def _definition(definition: AgentDefinition) -> dict[str, Any]:
    return {
        "name": definition.name,
        "kind": definition.kind.value,
        "summary": definition.summary,
        "description": definition.description,
        "groups": list(definition.groups),
        "capabilities": capability_views(definition.capabilities),
        "responsibilities": responsibility_views(definition),
    }


def responsibility_views(definition: AgentDefinition) -> list[dict[str, Any]]:
    """`{resource_key, actions}` of each."""
    return [
        {"resource_key": duty.resource_key, "actions": list(duty.actions)}
        for duty in definition.responsibilities
    ]


def capabilities_view(capabilities: Sequence[Capability]) -> dict[str, Any]:
    """`{registered: [{id, name, description}], count}`."""
    return {"registered": capability_views(capabilities), "count": len(capabilities)}


def capability_views(capabilities: Sequence[Capability]) -> list[dict[str, Any]]:
    """`{id, name, description}` of each."""
    return [{"id": one.id, "name": one.name, "description": one.description} for one in capabilities]


def discovery_view(found: Discovery) -> dict[str, Any]:
    """`{agents, groups, resources, tasks}`; agents best first, each with its instances and reasons."""
    return {
        "agents": [candidate_view(one, found.at) for one in found.agents],
        "groups": [{"name": name, "agents": agents} for name, agents in found.groups.items()],
        "resources": [{"resource_key": key, "agents": agents} for key, agents in found.resources.items()],
        "tasks": [brief_task_view(task) for task in found.tasks],
    }


def candidate_view(candidate: Candidate, now: datetime) -> dict[str, Any]:
    """An agent with its instances and its rank."""
    return {
        **_definition(candidate.definition),
        "available": candidate.available,
        "score": candidate.score,
        "reasons": list(candidate.reasons),
        "instances": [_instance(one, now) for one in candidate.instances],
    }


def _instance(instance: Instance, now: datetime) -> dict[str, Any]:
    seen = instance.last_seen_at
    return {
        "instance_id": instance.id,
        "state": instance.state.value,
        "available": instance.available(now),
        "last_seen_at": time_view(seen),
        "last_seen_s_ago": None if seen is None else max(0, int((now - seen).total_seconds())),
        "self_declared_capabilities": capability_views(instance.capabilities),
    }


def claim_view(claim: Claim) -> dict[str, Any]:
    """`{claim_id, scope, scope_type, resource_id, task_id, expires_at, released_at}`."""
    return {
        "claim_id": claim.id,
        "scope": claim.scope.text,
        "scope_type": claim.scope.type.value,
        "resource_id": claim.scope.resource_id,
        "task_id": claim.task_id,
        "expires_at": time_view(claim.expires_at),
        "released_at": time_view(claim.ended_at),
    }


def artifact_view(artifact: NetworkArtifact) -> dict[str, Any]:
    """`{artifact_id, reference, uri, type, label, task_id, published_by, created_at}`."""
    return {
        "artifact_id": artifact.id,
        "reference": f"artifact:{artifact.id}",
        "uri": artifact.uri,
        "type": artifact.type,
        "label": artifact.label,
        "task_id": artifact.task_id,
        "published_by": who_view(artifact.agent, artifact.instance_id),
        "created_at": time_view(artifact.created_at),
    }


def sent_view(sent: Sent) -> dict[str, Any]:
    """`{message_id, thread_id, recipients: [{agent, instance_id, state}]}`.

    A recipient's state is `waiting`, `held` (handed out, receipt not proven yet) or `delivered`.
    """
    return {
        "message_id": sent.message.id,
        "thread_id": sent.message.thread_id,
        "recipients": [
            {"agent": one.agent, "instance_id": one.instance_id, "state": one.state.value}
            for one in sent.deliveries
            if one.state is not DeliveryState.WITHDRAWN
        ],
    }


def inbox_view(inbox: Inbox) -> dict[str, Any]:
    """`{items, more}`; an item is `{kind: ask|reply|notice|status, ...}` or `{kind: task_offer, ...}`."""
    return {"items": [_inbox_item(item) for item in inbox.items], "more": inbox.more}


def _inbox_item(item: InboxItem) -> dict[str, Any]:
    common = {"delivery_id": item.delivery.id, "redelivered": item.delivery.handed_out > 1}
    if item.message is not None:
        return common | message_view(item.message) | {"note": _NOTES[item.message.kind]}
    assert item.task is not None  # an item has one of the two
    return common | {"kind": TASK_OFFER, "task": _task(item.task), "note": _OFFER_NOTE}


def message_view(message: Message) -> dict[str, Any]:
    """A message, whoever reads it."""
    return {
        "kind": message.kind.value,
        "message_id": message.id,
        "thread_id": message.thread_id,
        "from": who_view(message.sender, message.sender_instance),
        "subject": message.subject,
        "body": message.body,
        "task_id": message.task_id,
        "resource": message.resource,
        "sent_at": time_view(message.created_at),
    }


def task_record_view(record: TaskRecord) -> dict[str, Any]:
    """`{task, history, artifacts}`; history oldest first."""
    return {
        "task": _task(record.task),
        "history": [
            {
                "at": time_view(entry.at),
                "state": entry.state.value,
                "reason": entry.reason,
                "by": who_view(entry.agent, entry.instance_id) if entry.agent else None,
            }
            for entry in record.history
        ],
        "artifacts": [artifact_view(one) for one in record.artifacts],
    }


def task_view(task: Task) -> dict[str, Any]:
    """`{task}`, with why it is pending when it is."""
    return {"task": _task(task)}


def _task(task: Task) -> dict[str, Any]:
    return {
        **brief_task_view(task),
        "objective": task.objective,
        "acceptance_criteria": list(task.acceptance_criteria),
        "target": _target(task.target),
        "offered_to": list(task.offered_to),
        "attempt": task.attempt,
        "created_at": time_view(task.created_at),
    }


def brief_task_view(task: Task) -> dict[str, Any]:
    """A task, as lists show it."""
    return {
        "task_id": task.id,
        "title": task.title,
        "state": task.state.value,
        "reason": task.reason,
        "resource": task.resource,
        "creator": who_view(task.creator, task.creator_instance),
        "assignee": who_view(task.assignee, task.assignee_instance) if task.assignee else None,
        "updated_at": time_view(task.updated_at),
    }


def _target(target: Target) -> dict[str, Any]:
    return {"agent": target.agent, "instance_id": target.instance_id, "group": target.group}


def who_view(agent: str | None, instance_id: str | None) -> dict[str, Any]:
    """`{agent, instance_id}`."""
    return {"agent": agent, "instance_id": instance_id}


def time_view(at: datetime | None) -> str | None:
    """ISO 8601, UTC."""
    return None if at is None else at.isoformat()

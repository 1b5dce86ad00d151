"""What the twelve network tools answer, as JSON Schema: the `outputSchema` of each.

Times are ISO 8601 in UTC; what is absent is null, never left out.
"""

from __future__ import annotations

from typing import Any

from orchestrator.domain.network.agents import AgentKind, InstanceState
from orchestrator.domain.network.claims import ScopeType
from orchestrator.domain.network.task_states import TaskState
from orchestrator.domain.network.threads import DeliveryState, MessageKind

Schema = dict[str, Any]

TASK_OFFER = "task_offer"

_TEXT: Schema = {"type": "string"}
_TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
_TIME: Schema = {"type": "string", "format": "date-time"}
_TIME_OR_NULL: Schema = {"type": ["string", "null"], "format": "date-time"}
_FLAG: Schema = {"type": "boolean"}
_COUNT: Schema = {"type": "integer", "minimum": 0}


def _object(**properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _one_of(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


_TEXTS = _list(_TEXT)
_WHO = _object(agent=_TEXT_OR_NULL, instance_id=_TEXT_OR_NULL)
_WHO_OR_NULL: Schema = {**_WHO, "type": ["object", "null"]}
_CAPABILITIES = _list(_object(id=_TEXT, name=_TEXT, description=_TEXT))

_PROFILE: dict[str, Schema] = {
    "name": _TEXT,
    "kind": _one_of(*AgentKind),
    "summary": _TEXT,
    "description": _TEXT,
    "groups": _TEXTS,
    "capabilities": _CAPABILITIES,
    "responsibilities": _list(_object(resource_key=_TEXT_OR_NULL, actions=_TEXTS)),
}

_INSTANCE = _object(
    instance_id=_TEXT,
    state=_one_of(*InstanceState),
    available=_FLAG,
    last_seen_at=_TIME_OR_NULL,
    last_seen_s_ago={"type": ["integer", "null"], "minimum": 0},
    self_declared_capabilities=_CAPABILITIES,
)

_BRIEF_TASK: dict[str, Schema] = {
    "task_id": _TEXT,
    "title": _TEXT,
    "state": _one_of(*TaskState),
    "reason": _TEXT,
    "resource": _TEXT_OR_NULL,
    "creator": _WHO,
    "assignee": _WHO_OR_NULL,
    "updated_at": _TIME,
}

_TASK = _object(
    **_BRIEF_TASK,
    objective=_TEXT,
    acceptance_criteria=_TEXTS,
    target=_object(agent=_TEXT_OR_NULL, instance_id=_TEXT_OR_NULL, group=_TEXT_OR_NULL),
    offered_to=_TEXTS,
    attempt=_COUNT,
    created_at=_TIME,
)

ARTIFACT = _object(
    artifact_id=_TEXT,
    reference=_TEXT,
    uri=_TEXT,
    type=_TEXT,
    label=_TEXT,
    task_id=_TEXT_OR_NULL,
    published_by=_WHO,
    created_at=_TIME,
)

_DELIVERED: dict[str, Schema] = {"delivery_id": _TEXT, "redelivered": _FLAG}

_MESSAGE = _object(
    **_DELIVERED,
    kind=_one_of(*MessageKind),
    message_id=_TEXT,
    thread_id=_TEXT,
    **{"from": _WHO},
    subject=_TEXT,
    body=_TEXT,
    task_id=_TEXT_OR_NULL,
    resource=_TEXT_OR_NULL,
    sent_at=_TIME,
    note=_TEXT,
)

_OFFER = _object(**_DELIVERED, kind=_one_of(TASK_OFFER), task=_TASK, note=_TEXT)

WHOAMI = _object(
    network=_TEXT,
    definition=_object(**_PROFILE),
    instance=_object(
        instance_id=_TEXT,
        job_id=_TEXT_OR_NULL,
        state=_one_of(*InstanceState),
        self_declared_capabilities=_CAPABILITIES,
    ),
)

DISCOVERY = _object(
    agents=_list(
        _object(
            **_PROFILE,
            available=_FLAG,
            score=_COUNT,
            reasons=_TEXTS,
            instances=_list(_INSTANCE),
        )
    ),
    groups=_list(_object(name=_TEXT, agents=_TEXTS)),
    resources=_list(_object(resource_key=_TEXT, agents=_TEXTS)),
    tasks=_list(_object(**_BRIEF_TASK)),
)

SENT = _object(
    message_id=_TEXT,
    thread_id=_TEXT,
    recipients=_list(
        _object(
            agent=_TEXT,
            instance_id=_TEXT_OR_NULL,
            state=_one_of(DeliveryState.WAITING, DeliveryState.HELD, DeliveryState.DELIVERED),
        )
    ),
)

INBOX = _object(items=_list({"type": "object", "anyOf": [_MESSAGE, _OFFER]}), more=_FLAG)

TASK = _object(task=_TASK)

TASK_RECORD = _object(
    task=_TASK,
    history=_list(_object(at=_TIME, state=_one_of(*TaskState), reason=_TEXT, by=_WHO_OR_NULL)),
    artifacts=_list(ARTIFACT),
)

CLAIM = _object(
    claim_id=_TEXT,
    scope=_TEXT,
    scope_type=_one_of(*ScopeType),
    resource_id=_TEXT_OR_NULL,
    task_id=_TEXT_OR_NULL,
    expires_at=_TIME,
    released_at=_TIME_OR_NULL,
)

CAPABILITIES = _object(registered=_CAPABILITIES, count=_COUNT)

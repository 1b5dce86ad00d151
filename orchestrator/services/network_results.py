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

TEXT: Schema = {"type": "string"}
TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
TIME: Schema = {"type": "string", "format": "date-time"}
TIME_OR_NULL: Schema = {"type": ["string", "null"], "format": "date-time"}
FLAG: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer", "minimum": 0}


def record(**properties: Schema) -> Schema:
    """An object that always has these members, and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def list_of(items: Schema) -> Schema:
    """A list of these."""
    return {"type": "array", "items": items}


def one_of(*values: str) -> Schema:
    """One of these words."""
    return {"type": "string", "enum": list(values)}


TEXTS = list_of(TEXT)
WHO = record(agent=TEXT_OR_NULL, instance_id=TEXT_OR_NULL)
WHO_OR_NULL: Schema = {**WHO, "type": ["object", "null"]}
ABILITIES = list_of(record(id=TEXT, name=TEXT, description=TEXT))
RESPONSIBILITIES = list_of(record(resource_key=TEXT_OR_NULL, actions=TEXTS))

_PROFILE: dict[str, Schema] = {
    "name": TEXT,
    "kind": one_of(*AgentKind),
    "summary": TEXT,
    "description": TEXT,
    "groups": TEXTS,
    "capabilities": ABILITIES,
    "responsibilities": RESPONSIBILITIES,
}

_INSTANCE = record(
    instance_id=TEXT,
    state=one_of(*InstanceState),
    available=FLAG,
    last_seen_at=TIME_OR_NULL,
    last_seen_s_ago={"type": ["integer", "null"], "minimum": 0},
    self_declared_capabilities=ABILITIES,
)

BRIEF_TASK: dict[str, Schema] = {
    "task_id": TEXT,
    "title": TEXT,
    "state": one_of(*TaskState),
    "reason": TEXT,
    "resource": TEXT_OR_NULL,
    "creator": WHO,
    "assignee": WHO_OR_NULL,
    "updated_at": TIME,
}

_TASK = record(
    **BRIEF_TASK,
    objective=TEXT,
    acceptance_criteria=TEXTS,
    target=record(agent=TEXT_OR_NULL, instance_id=TEXT_OR_NULL, group=TEXT_OR_NULL),
    offered_to=TEXTS,
    attempt=COUNT,
    created_at=TIME,
)

ARTIFACT = record(
    artifact_id=TEXT,
    reference=TEXT,
    uri=TEXT,
    type=TEXT,
    label=TEXT,
    task_id=TEXT_OR_NULL,
    published_by=WHO,
    created_at=TIME,
)

_DELIVERED: dict[str, Schema] = {"delivery_id": TEXT, "redelivered": FLAG}

MESSAGE: dict[str, Schema] = {
    "kind": one_of(*MessageKind),
    "message_id": TEXT,
    "thread_id": TEXT,
    "from": WHO,
    "subject": TEXT,
    "body": TEXT,
    "task_id": TEXT_OR_NULL,
    "resource": TEXT_OR_NULL,
    "sent_at": TIME,
}

_DELIVERED_MESSAGE = record(**_DELIVERED, **MESSAGE, note=TEXT)

_OFFER = record(**_DELIVERED, kind=one_of(TASK_OFFER), task=_TASK, note=TEXT)

WHOAMI = record(
    network=TEXT,
    definition=record(**_PROFILE),
    instance=record(
        instance_id=TEXT,
        job_id=TEXT_OR_NULL,
        state=one_of(*InstanceState),
        self_declared_capabilities=ABILITIES,
    ),
)

CANDIDATE = record(
    **_PROFILE,
    available=FLAG,
    score=COUNT,
    reasons=TEXTS,
    instances=list_of(_INSTANCE),
)

DISCOVERY = record(
    agents=list_of(CANDIDATE),
    groups=list_of(record(name=TEXT, agents=TEXTS)),
    resources=list_of(record(resource_key=TEXT, agents=TEXTS)),
    tasks=list_of(record(**BRIEF_TASK)),
)

SENT = record(
    message_id=TEXT,
    thread_id=TEXT,
    recipients=list_of(
        record(
            agent=TEXT,
            instance_id=TEXT_OR_NULL,
            state=one_of(DeliveryState.WAITING, DeliveryState.HELD, DeliveryState.DELIVERED),
        )
    ),
)

INBOX = record(items=list_of({"type": "object", "anyOf": [_DELIVERED_MESSAGE, _OFFER]}), more=FLAG)

TASK = record(task=_TASK)

TASK_RECORD = record(
    task=_TASK,
    history=list_of(record(at=TIME, state=one_of(*TaskState), reason=TEXT, by=WHO_OR_NULL)),
    artifacts=list_of(ARTIFACT),
)

CLAIM = record(
    claim_id=TEXT,
    scope=TEXT,
    scope_type=one_of(*ScopeType),
    resource_id=TEXT_OR_NULL,
    task_id=TEXT_OR_NULL,
    expires_at=TIME,
    released_at=TIME_OR_NULL,
)

CAPABILITIES = record(registered=ABILITIES, count=COUNT)

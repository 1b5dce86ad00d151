"""What the `control_*` tools answer, as JSON Schema: the `outputSchema` of each."""

from __future__ import annotations

from orchestrator.domain.jobs import JobState
from orchestrator.domain.network.agents import AgentKind
from orchestrator.domain.network.rights import Right
from orchestrator.domain.network.task_states import TaskState
from orchestrator.domain.network.threads import MessageKind
from orchestrator.services import network_results as network
from orchestrator.services.network_results import (
    BRIEF_TASK,
    COUNT,
    FLAG,
    TEXT,
    TEXT_OR_NULL,
    TEXTS,
    TIME,
    TIME_OR_NULL,
    WHO,
    WHO_OR_NULL,
    Schema,
    list_of,
    one_of,
    record,
)

_RIGHTS = list_of(one_of(*Right))
_NETWORKS = list_of(record(network=TEXT, rights=_RIGHTS, active=FLAG))
_STATE_OR_NULL: Schema = {"type": ["string", "null"], "enum": [*(str(one) for one in TaskState), None]}
_JOB_STATE_OR_NULL: Schema = {"type": ["string", "null"], "enum": [*(str(one) for one in JobState), None]}

WHOAMI = record(name=TEXT, person=TEXT, active_network=TEXT_OR_NULL, networks=_NETWORKS)
NETWORKS = record(active_network=TEXT_OR_NULL, networks=_NETWORKS)
USED_NETWORK = record(active_network=TEXT, rights=_RIGHTS)
STATUS = record(
    network=TEXT,
    agents=COUNT,
    instances=COUNT,
    available=COUNT,
    open_tasks=list_of(record(state=one_of(*TaskState), count=COUNT)),
    claims=COUNT,
)
AGENTS = record(network=TEXT, agents=list_of(network.CANDIDATE))
TASKS = record(network=TEXT, tasks=list_of(record(**BRIEF_TASK)))
TASK_RECORD = record(network=TEXT, **network.TASK_RECORD["properties"])
SENT = record(network=TEXT, **network.SENT["properties"])
TASK = record(network=TEXT, **network.TASK["properties"])
_LAUNCHED: dict[str, Schema] = {
    "network": TEXT,
    "agent": TEXT,
    "instance_id": TEXT,
    "job_id": TEXT_OR_NULL,
    "state": _JOB_STATE_OR_NULL,
    "launched": FLAG,
}
LAUNCHED = record(**_LAUNCHED)
WOKEN = record(how=one_of("prompted", "launched", "reachable"), **_LAUNCHED)
STOPPED = record(
    status=one_of("confirmation_required", "stopping", "restarting"),
    network=TEXT,
    instance_id=TEXT,
    job_id=TEXT,
    confirmation_id=TEXT_OR_NULL,
    expires_at=TIME_OR_NULL,
    says=TEXT_OR_NULL,
)
HISTORY = record(
    network=TEXT,
    entries=list_of(
        record(
            at=TIME,
            kind=one_of(*MessageKind, "task"),
            by=WHO_OR_NULL,
            text=TEXT,
            thread_id=TEXT_OR_NULL,
            task_id=TEXT_OR_NULL,
            state=_STATE_OR_NULL,
        )
    ),
)
THREAD = record(
    network=TEXT,
    thread_id=TEXT,
    subject=TEXT,
    participants=list_of(WHO),
    created_at=TIME,
    messages=list_of(record(**network.MESSAGE)),
)
GRAPH = record(
    network=TEXT,
    nodes=list_of(record(name=TEXT, kind=one_of(*AgentKind), groups=TEXTS, instances=COUNT, available=FLAG)),
    edges=list_of(record(**{"from": TEXT, "to": TEXT, "kind": one_of("message", "task"), "count": COUNT})),
)
_SAID: dict[str, Schema] = {
    "message_id": TEXT,
    "conversation_id": TEXT,
    "from": one_of("operator", "representative"),
    "body": TEXT,
    "sent_at": TIME,
}
SAID = record(**_SAID)
CHANNEL = record(messages=list_of(record(**_SAID)))

"""The arguments of the `control_*` tools, as JSON Schema; names and defaults are protocol."""

from __future__ import annotations

from typing import Any

from orchestrator.domain.jobs import JobMode
from orchestrator.domain.network.task_states import TaskState
from orchestrator.services import network_schemas as network
from orchestrator.services.network_schemas import (
    MAX_ID_CHARS,
    MAX_LINE_CHARS,
    MAX_REASON_CHARS,
    MAX_TEXT_CHARS,
    Schema,
    record,
    text_field,
)

MAX_LISTED = 500

_NETWORK_ID = text_field("A network of yours; without one, the active network.", MAX_LINE_CHARS)
_CONVERSATION = text_field("Joins messages that belong together.", MAX_ID_CHARS)
_CONFIRMATION = text_field(
    "What the same call answered before, once an operator has agreed to it. Without it nothing is done: the "
    "answer has the id.",
    MAX_ID_CHARS,
)


def _limit(default: int) -> Schema:
    return {
        "type": "integer",
        "minimum": 1,
        "maximum": MAX_LISTED,
        "default": default,
        "description": "At most so many, the newest.",
    }


def _in_network(properties: dict[str, Any], *required: str) -> Schema:
    return record({**properties, "networkId": _NETWORK_ID}, *required)


NO_ARGUMENTS = record({})
NETWORK = _in_network({})
USE_NETWORK = record({"networkId": text_field("A network of yours.", MAX_LINE_CHARS)}, "networkId")
FIND_AGENTS = _in_network(network.DISCOVER["properties"])
LIST_TASKS = _in_network(
    {
        "status": {
            "type": "string",
            "enum": [state.value for state in TaskState],
            "description": "Only tasks in this state.",
        },
        "limit": _limit(50),
    }
)
TASK_STATUS = record({"taskId": text_field("Id of a task in any network of yours.", MAX_ID_CHARS)}, "taskId")
ASK = _in_network(network.ASK["properties"], *network.ASK["required"])
REPLY = record(network.REPLY["properties"], *network.REPLY["required"])
DELEGATE = _in_network(network.DELEGATE["properties"], *network.DELEGATE["required"])
WAKE = _in_network(
    {
        "toAgent": text_field("Name of an agent.", MAX_LINE_CHARS),
        "toInstance": text_field("Id of one instance. It wins over toAgent.", MAX_ID_CHARS),
        "reason": text_field("What it is told.", MAX_REASON_CHARS),
    }
)
LAUNCH = _in_network(
    {
        "agentName": text_field("Name of an agent.", MAX_LINE_CHARS),
        "definitionId": text_field(
            "Its definition, which has the agent's name. It wins over agentName.", MAX_LINE_CHARS
        ),
        "hostId": {
            "type": "string",
            "enum": ["local"],
            "default": "local",
            "description": "Where: there is one machine.",
        },
        "runtime": {
            "type": "string",
            "enum": [mode.value for mode in JobMode],
            "default": JobMode.HOSTED.value,
            "description": "In a container, or with the orchestrator's tools only.",
        },
    }
)
INSTANCE = _in_network(
    {
        "instanceId": text_field("Id of an instance that a job serves.", MAX_ID_CHARS),
        "confirmationId": _CONFIRMATION,
    },
    "instanceId",
)
HISTORY = _in_network({"limit": _limit(50)})
THREAD = record({"threadId": text_field("Id of a thread in any network of yours.", MAX_ID_CHARS)}, "threadId")
CHANNEL_SEND = record(
    {"body": text_field("What to say.", MAX_TEXT_CHARS), "conversationId": _CONVERSATION}, "body"
)
CHANNEL_HISTORY = record({"conversationId": _CONVERSATION, "limit": _limit(100)})

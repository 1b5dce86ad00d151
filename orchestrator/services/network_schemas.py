"""The arguments of the twelve network tools, as JSON Schema; names and defaults are protocol.

Source: worker-network-tools, "The tool set".
"""

from __future__ import annotations

from typing import Any

from orchestrator.domain.network.artifacts import ARTIFACT_TYPES
from orchestrator.domain.network.capabilities import MAX_CAPABILITIES, MAX_DESCRIPTION_CHARS, MAX_NAME_CHARS
from orchestrator.domain.network.claims import DEFAULT_TTL_S, MAX_TTL_S, ScopeType
from orchestrator.domain.network.globs import MAX_SCOPE_CHARS
from orchestrator.domain.network.resources import MAX_KEY_CHARS
from orchestrator.domain.network.task_states import NEEDS_REASON, UPDATES

Schema = dict[str, Any]

MAX_TEXT_CHARS = 32_768
MAX_LINE_CHARS = 200
MAX_ID_CHARS = 128
MAX_REASON_CHARS = 8_000
MAX_CRITERIA = 20
MAX_CRITERION_CHARS = 1_000
MAX_URI_CHARS = 2_048


def text_field(description: str, longest: int, **more: Any) -> Schema:
    """Text that is not empty."""
    return {"type": "string", "minLength": 1, "maxLength": longest, "description": description, **more}


def record(properties: dict[str, Schema], *required: str) -> Schema:
    """An object with these members and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


_RESOURCE = (
    "A shared resource, such as a repository; git@host:o/r.git, ssh://git@host/o/r and https://host/o/r "
    "are the same."
)
_TO_AGENT = text_field("Name of an agent, or of a group, in this network.", MAX_LINE_CHARS)
_TO_INSTANCE = text_field("Id of one instance. It wins over toAgent.", MAX_ID_CHARS)
_TASK_ID = text_field("Id of a task in this network.", MAX_ID_CHARS)

NO_ARGUMENTS = record({})

DISCOVER = record(
    {
        "resourceKey": text_field(f"Only who and what belongs to this resource. {_RESOURCE}", MAX_KEY_CHARS),
        "action": text_field("Only agents that do this, such as 'review'.", MAX_LINE_CHARS),
    }
)

ASK = record(
    {
        "body": text_field("What to ask.", MAX_TEXT_CHARS),
        "toAgent": _TO_AGENT,
        "toInstance": _TO_INSTANCE,
        "threadId": text_field("Go on in this thread; without a recipient, its others get it.", MAX_ID_CHARS),
        "subject": text_field("One line that says what it is about.", MAX_LINE_CHARS),
        "taskId": text_field("The task that it is about.", MAX_ID_CHARS),
        "resource": text_field(f"The resource that it is about. {_RESOURCE}", MAX_KEY_CHARS),
    },
    "body",
)

DELEGATE = record(
    {
        "objective": text_field("What is to be done, complete in itself.", MAX_TEXT_CHARS),
        "title": text_field("A short name; without one, the objective's first line.", MAX_LINE_CHARS),
        "acceptanceCriteria": {
            "type": "array",
            "items": text_field("One checkable statement.", MAX_CRITERION_CHARS),
            "maxItems": MAX_CRITERIA,
            "description": "What has to be true when it is done.",
        },
        "toAgent": _TO_AGENT,
        "toInstance": _TO_INSTANCE,
        "resource": text_field(
            f"The resource that it is about; without a target, whoever is responsible for it. {_RESOURCE}",
            MAX_KEY_CHARS,
        ),
    },
    "objective",
)

REPLY = record(
    {
        "threadId": text_field("The thread to reply in.", MAX_ID_CHARS),
        "body": text_field("The reply.", MAX_TEXT_CHARS),
    },
    "threadId",
    "body",
)

TASK_GET = record({"taskId": _TASK_ID}, "taskId")

TASK_UPDATE = record(
    {
        "taskId": _TASK_ID,
        "status": {
            "type": "string",
            "enum": [state.value for state in UPDATES],
            "description": "The new state. An offered task is taken by 'accepted', declined by 'cancelled'.",
        },
        "reason": text_field(
            "Required for "
            + "; ".join(f"{state.value} ({what})" for state, what in NEEDS_REASON.items())
            + ".",
            MAX_REASON_CHARS,
        ),
    },
    "taskId",
    "status",
)

CLAIM = record(
    {
        "scope": text_field(
            "What to claim. A path in the workspace or a glob (*, ?, **, [...], {a,b}; a directory "
            "contains its children; '.' is everything), a task's id, or a resource, by scopeType.",
            MAX_SCOPE_CHARS,
        ),
        "scopeType": {
            "type": "string",
            "enum": [kind.value for kind in ScopeType],
            "default": ScopeType.PATH.value,
            "description": "What scope names.",
        },
        "resourceId": text_field(
            f"The resource that a path lies in; without one, the path in every resource. {_RESOURCE}",
            MAX_KEY_CHARS,
        ),
        "taskId": text_field("The task that it is claimed for.", MAX_ID_CHARS),
        "ttlSeconds": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_TTL_S,
            "default": DEFAULT_TTL_S,
            "description": "Seconds until it ends by itself. Claim the same scope again to renew it.",
        },
    },
    "scope",
)

RELEASE = record({"claimId": text_field("Id of a claim of yours.", MAX_ID_CHARS)}, "claimId")

PUBLISH_ARTIFACT = record(
    {
        "uri": text_field("Where it is: a URL, or a path that its readers can reach.", MAX_URI_CHARS),
        "label": text_field("A short name for it.", MAX_LINE_CHARS),
        "type": text_field(
            f"What it is: {', '.join(ARTIFACT_TYPES)}, or a word of your own.",
            MAX_NAME_CHARS,
            default=ARTIFACT_TYPES[-1],
        ),
        "taskId": text_field("The task that it was made for.", MAX_ID_CHARS),
    },
    "uri",
)

REGISTER_CAPABILITIES = record(
    {
        "capabilities": {
            "type": "array",
            "maxItems": MAX_CAPABILITIES,
            "items": record(
                {
                    "id": text_field("Its own id; without one, made of the name.", MAX_NAME_CHARS),
                    "name": text_field("What you can do, in a few words.", MAX_NAME_CHARS),
                    "description": {
                        "type": "string",
                        "maxLength": MAX_DESCRIPTION_CHARS,
                        "description": "More about it.",
                    },
                },
                "name",
            ),
            "description": "All that you declare; an empty list takes an earlier declaration back.",
        }
    },
    "capabilities",
)

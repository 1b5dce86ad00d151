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


def _text(description: str, longest: int, **more: Any) -> Schema:
    return {"type": "string", "minLength": 1, "maxLength": longest, "description": description, **more}


def _object(properties: dict[str, Schema], *required: str) -> Schema:
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
_TO_AGENT = _text("Name of an agent, or of a group, in this network.", MAX_LINE_CHARS)
_TO_INSTANCE = _text("Id of one instance. It wins over toAgent.", MAX_ID_CHARS)
_TASK_ID = _text("Id of a task in this network.", MAX_ID_CHARS)

NO_ARGUMENTS = _object({})

DISCOVER = _object(
    {
        "resourceKey": _text(f"Only who and what belongs to this resource. {_RESOURCE}", MAX_KEY_CHARS),
        "action": _text("Only agents that do this, such as 'review'.", MAX_LINE_CHARS),
    }
)

ASK = _object(
    {
        "body": _text("What to ask.", MAX_TEXT_CHARS),
        "toAgent": _TO_AGENT,
        "toInstance": _TO_INSTANCE,
        "threadId": _text("Go on in this thread; without a recipient, its others get it.", MAX_ID_CHARS),
        "subject": _text("One line that says what it is about.", MAX_LINE_CHARS),
        "taskId": _text("The task that it is about.", MAX_ID_CHARS),
        "resource": _text(f"The resource that it is about. {_RESOURCE}", MAX_KEY_CHARS),
    },
    "body",
)

DELEGATE = _object(
    {
        "objective": _text("What is to be done, complete in itself.", MAX_TEXT_CHARS),
        "title": _text("A short name; without one, the objective's first line.", MAX_LINE_CHARS),
        "acceptanceCriteria": {
            "type": "array",
            "items": _text("One checkable statement.", MAX_CRITERION_CHARS),
            "maxItems": MAX_CRITERIA,
            "description": "What has to be true when it is done.",
        },
        "toAgent": _TO_AGENT,
        "toInstance": _TO_INSTANCE,
        "resource": _text(
            f"The resource that it is about; without a target, whoever is responsible for it. {_RESOURCE}",
            MAX_KEY_CHARS,
        ),
    },
    "objective",
)

REPLY = _object(
    {
        "threadId": _text("The thread to reply in.", MAX_ID_CHARS),
        "body": _text("The reply.", MAX_TEXT_CHARS),
    },
    "threadId",
    "body",
)

TASK_GET = _object({"taskId": _TASK_ID}, "taskId")

TASK_UPDATE = _object(
    {
        "taskId": _TASK_ID,
        "status": {
            "type": "string",
            "enum": [state.value for state in UPDATES],
            "description": "The new state. An offered task is taken by 'accepted', declined by 'cancelled'.",
        },
        "reason": _text(
            "Required for "
            + "; ".join(f"{state.value} ({what})" for state, what in NEEDS_REASON.items())
            + ".",
            MAX_REASON_CHARS,
        ),
    },
    "taskId",
    "status",
)

CLAIM = _object(
    {
        "scope": _text(
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
        "resourceId": _text(
            f"The resource that a path lies in; without one, the path in every resource. {_RESOURCE}",
            MAX_KEY_CHARS,
        ),
        "taskId": _text("The task that it is claimed for.", MAX_ID_CHARS),
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

RELEASE = _object({"claimId": _text("Id of a claim of yours.", MAX_ID_CHARS)}, "claimId")

PUBLISH_ARTIFACT = _object(
    {
        "uri": _text("Where it is: a URL, or a path that its readers can reach.", MAX_URI_CHARS),
        "label": _text("A short name for it.", MAX_LINE_CHARS),
        "type": _text(
            f"What it is: {', '.join(ARTIFACT_TYPES)}, or a word of your own.",
            MAX_NAME_CHARS,
            default=ARTIFACT_TYPES[-1],
        ),
        "taskId": _text("The task that it was made for.", MAX_ID_CHARS),
    },
    "uri",
)

REGISTER_CAPABILITIES = _object(
    {
        "capabilities": {
            "type": "array",
            "maxItems": MAX_CAPABILITIES,
            "items": _object(
                {
                    "id": _text("Its own id; without one, made of the name.", MAX_NAME_CHARS),
                    "name": _text("What you can do, in a few words.", MAX_NAME_CHARS),
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

"""The three collaboration tools as JSON Schema: arguments and results; names and defaults are protocol.

Source: agent-toolbox.
"""

from __future__ import annotations

from typing import Any

from orchestrator.domain.network.agent_search import (
    DEFAULT_STRICTNESS,
    DEFAULT_TOP_K,
    MAX_TOP_K,
    OutputDetail,
)
from orchestrator.domain.network.agents import AgentKind
from orchestrator.domain.network.collaboration import DEFAULT_TIMEOUT_S, Cause, CheckStatus
from orchestrator.services.network_schemas import MAX_ID_CHARS, MAX_LINE_CHARS, MAX_TEXT_CHARS

Schema = dict[str, Any]

MAX_QUERY_CHARS = 4_000
MAX_TAGS = 50


def _text(description: str, longest: int) -> Schema:
    return {"type": "string", "minLength": 1, "maxLength": longest, "description": description}


def _arguments(properties: dict[str, Schema], *required: str) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


SEARCH = _arguments(
    {
        "query": _text(
            "The capability or expertise that you need, in plain words: what somebody should be able to do.",
            MAX_QUERY_CHARS,
        ),
        "top_k": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_TOP_K,
            "default": DEFAULT_TOP_K,
            "description": "The most results to return.",
        },
        "strictness": {
            "type": "number",
            "minimum": 0,
            "maximum": 1,
            "default": DEFAULT_STRICTNESS,
            "description": "The least similarity: 0.2 is plausible, higher values ask for closer matches.",
        },
        "output_detail": {
            "type": "string",
            "enum": [one.value for one in OutputDetail],
            "default": OutputDetail.SUMMARY.value,
            "description": "How much of each profile to return: minimal is id, name, url and payment "
            "address; summary adds summary and tags; capabilities adds capabilities and skills; full is "
            "everything.",
        },
        "include_tags": {
            "type": "array",
            "items": _text("A tag, spelled as in the profile.", MAX_LINE_CHARS),
            "maxItems": MAX_TAGS,
            "description": "Only agents that carry at least one of these exact tags.",
        },
    },
    "query",
)

SEND = _arguments(
    {
        "target_agent_id": _text("The agent_id of a search_for_agents result.", MAX_LINE_CHARS),
        "task": _text(
            "The complete task. Include all context: the agent sees nothing else of your work.",
            MAX_TEXT_CHARS,
        ),
        "timeout": {
            "type": "number",
            "minimum": 1,
            "default": DEFAULT_TIMEOUT_S,
            "description": "Seconds to wait for the response; over 300 is 300. Left out, a short task is "
            "waited for less long.",
        },
    },
    "target_agent_id",
    "task",
)

CHECK = _arguments(
    {"request_id": _text("The request_id that send_collaboration_request returned.", MAX_ID_CHARS)},
    "request_id",
)

# --- results ---------------------------------------------------------------------------------------------

_TEXT: Schema = {"type": "string"}
_TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
_TEXTS: Schema = {"type": "array", "items": _TEXT}


def _result(**properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


_CAPABILITY = _result(id=_TEXT, name=_TEXT, description=_TEXT)
_MINIMAL: dict[str, Schema] = {
    "agent_id": _TEXT,
    "similarity_score": {"type": "number"},
    "name": _TEXT,
    "url": _TEXT,
    "payment_address": _TEXT_OR_NULL,
}
_SUMMARY = _MINIMAL | {"summary": _TEXT, "tags": _TEXTS}
_CAPABILITIES = _SUMMARY | {
    "capabilities": _list(_CAPABILITY),
    "skills": _list(_result(name=_TEXT, description=_TEXT)),
}
_FULL = _CAPABILITIES | {
    "description": _TEXT,
    "examples": _TEXTS,
    "version": _TEXT,
    "kind": {"type": "string", "enum": [kind.value for kind in AgentKind]},
    "groups": _TEXTS,
    "responsibilities": _list(_result(resource_key=_TEXT_OR_NULL, actions=_TEXTS)),
    "self_declared_capabilities": _list(_CAPABILITY),
}

AGENTS_FOUND = _result(
    message=_TEXT,
    results=_list(
        {
            "type": "object",
            "title": "AgentSearchResultItem",
            "anyOf": [_result(**level) for level in (_MINIMAL, _SUMMARY, _CAPABILITIES, _FULL)],
        }
    ),
) | {"title": "AgentSearchOutput"}

SENT_REQUEST = _result(
    success={"type": "boolean"},
    response=_TEXT_OR_NULL,
    error={"type": ["string", "null"], "enum": [*(cause.value for cause in Cause), None]},
    request_id=_TEXT_OR_NULL,
    waited_s={"type": ["number", "null"]},
    message=_TEXT_OR_NULL,
)

CHECKED_REQUEST = _result(
    status={"type": "string", "enum": [status.value for status in CheckStatus]},
    request_id=_TEXT,
    response=_TEXT_OR_NULL,
)

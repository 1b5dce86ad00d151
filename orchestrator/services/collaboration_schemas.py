"""The three collaboration tools as JSON Schema: arguments and results; names and defaults are protocol.

Source: agent-toolbox.
"""

from __future__ import annotations

from orchestrator.domain.network.agent_search import (
    DEFAULT_STRICTNESS,
    DEFAULT_TOP_K,
    MAX_TOP_K,
    OutputDetail,
)
from orchestrator.domain.network.agents import AgentKind
from orchestrator.domain.network.collaboration import DEFAULT_TIMEOUT_S, Cause, CheckStatus
from orchestrator.services.network_results import (
    ABILITIES,
    RESPONSIBILITIES,
    TEXT,
    TEXT_OR_NULL,
    TEXTS,
    list_of,
)
from orchestrator.services.network_results import record as result
from orchestrator.services.network_schemas import (
    MAX_ID_CHARS,
    MAX_LINE_CHARS,
    MAX_TEXT_CHARS,
    Schema,
    text_field,
)
from orchestrator.services.network_schemas import record as arguments

MAX_QUERY_CHARS = 4_000
MAX_TAGS = 50


SEARCH = arguments(
    {
        "query": text_field(
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
            "items": text_field("A tag, spelled as in the profile.", MAX_LINE_CHARS),
            "maxItems": MAX_TAGS,
            "description": "Only agents that carry at least one of these exact tags.",
        },
    },
    "query",
)

SEND = arguments(
    {
        "target_agent_id": text_field("The agent_id of a search_for_agents result.", MAX_LINE_CHARS),
        "task": text_field(
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

CHECK = arguments(
    {"request_id": text_field("The request_id that send_collaboration_request returned.", MAX_ID_CHARS)},
    "request_id",
)

# --- results ---------------------------------------------------------------------------------------------

_MINIMAL: dict[str, Schema] = {
    "agent_id": TEXT,
    "similarity_score": {"type": "number"},
    "name": TEXT,
    "url": TEXT,
    "payment_address": TEXT_OR_NULL,
}
_SUMMARY = _MINIMAL | {"summary": TEXT, "tags": TEXTS}
_CAPABILITIES = _SUMMARY | {
    "capabilities": ABILITIES,
    "skills": list_of(result(name=TEXT, description=TEXT)),
}
_FULL = _CAPABILITIES | {
    "description": TEXT,
    "examples": TEXTS,
    "version": TEXT,
    "kind": {"type": "string", "enum": [kind.value for kind in AgentKind]},
    "groups": TEXTS,
    "responsibilities": RESPONSIBILITIES,
    "self_declared_capabilities": ABILITIES,
}

AGENTS_FOUND = result(
    message=TEXT,
    results=list_of(
        {
            "type": "object",
            "title": "AgentSearchResultItem",
            "anyOf": [result(**level) for level in (_MINIMAL, _SUMMARY, _CAPABILITIES, _FULL)],
        }
    ),
) | {"title": "AgentSearchOutput"}

SENT_REQUEST = result(
    success={"type": "boolean"},
    response=TEXT_OR_NULL,
    error={"type": ["string", "null"], "enum": [*(cause.value for cause in Cause), None]},
    request_id=TEXT_OR_NULL,
    waited_s={"type": ["number", "null"]},
    message=TEXT_OR_NULL,
)

CHECKED_REQUEST = result(
    status={"type": "string", "enum": [status.value for status in CheckStatus]},
    request_id=TEXT,
    response=TEXT_OR_NULL,
)

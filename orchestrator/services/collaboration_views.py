"""What the collaboration tools answer: plain JSON; of a search's results only what was asked for."""

from __future__ import annotations

from typing import Any

from orchestrator.domain.network.agent_search import Found, Match, OutputDetail
from orchestrator.services.collaboration import Checked, Outcome
from orchestrator.services.network_views import capability_views, responsibility_views


def found_view(found: Found, detail: OutputDetail) -> dict[str, Any]:
    """`AgentSearchOutput`: `{message, results}`."""
    return {"message": found.message, "results": [_item(one, detail) for one in found.matches]}


def _item(match: Match, detail: OutputDetail) -> dict[str, Any]:
    agent = match.agent
    levels: dict[OutputDetail, dict[str, Any]] = {
        OutputDetail.MINIMAL: {
            "agent_id": agent.name,
            "similarity_score": match.similarity,
            "name": agent.name,
            "url": agent.url,
            "payment_address": agent.payment_address,
        },
        OutputDetail.SUMMARY: {"summary": agent.summary, "tags": list(agent.tags)},
        OutputDetail.CAPABILITIES: {
            "capabilities": capability_views(agent.capabilities),
            "skills": [{"name": one.name, "description": one.description} for one in agent.skills],
        },
        OutputDetail.FULL: {
            "description": agent.description,
            "examples": list(agent.examples),
            "version": agent.version,
            "kind": agent.kind.value,
            "groups": list(agent.groups),
            "responsibilities": responsibility_views(agent),
            "self_declared_capabilities": capability_views(match.declared),
        },
    }
    item: dict[str, Any] = {}
    for level, fields in levels.items():
        item |= fields
        if level is detail:
            break
    return item


def outcome_view(outcome: Outcome) -> dict[str, Any]:
    """`{success, response, error, request_id, waited_s, message}`; absent values are null."""
    request = outcome.request
    return {
        "success": outcome.cause is None,
        "response": outcome.response,
        "error": None if outcome.cause is None else outcome.cause.value,
        "request_id": None if request is None else request.id,
        "waited_s": None if request is None else outcome.waited_s,
        "message": outcome.message or None,
    }


def checked_view(checked: Checked) -> dict[str, Any]:
    """`{status, request_id, response}`."""
    return {"status": checked.status.value, "request_id": checked.request_id, "response": checked.response}

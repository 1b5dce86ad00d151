"""How a rule says no."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

RefusalCode = Literal[
    "agent_has_work",
    "claim_conflict",
    "collaboration_chain_too_long",
    "collaboration_loop_detected",
    "delegation_budget_spent",
    "illegal_transition",
    "invalid_capabilities",
    "invalid_name",
    "invalid_resource",
    "invalid_scope",
    "invalid_ttl",
    "invalid_uri",
    "kind_is_fixed",
    "managed_elsewhere",
    "name_taken",
    "no_recipient",
    "not_a_member",
    "not_a_participant",
    "not_found",
    "not_a_human",
    "not_offered",
    "not_served_by_jobs",
    "not_yours",
    "reason_required",
    "search_unavailable",
    "self_request",
    "target_ended",
    "task_taken",
    "too_many_claims",
]

ControlCode = Literal[
    "confirmation_invalid",
    "confirmation_pending",
    "no_active_network",
    "not_a_job",
    "not_a_representative",
    "not_granted",
    "not_launched",
]

# What each says, for the documents; a code never changes its meaning.
MEANINGS: Mapping[RefusalCode, str] = {
    "agent_has_work": "the agent has unfinished tasks, unread messages or a running instance",
    "claim_conflict": "the scope overlaps what others hold; `conflicts` names each holder, scope and expiry",
    "collaboration_chain_too_long": "the work was delegated five times already",
    "collaboration_loop_detected": "the target's own work led to this; `chain` names those whose work it is",
    "delegation_budget_spent": "the work that task `root` began was split into 50 tasks already",
    "illegal_transition": "the task can't get there from its state; `state` and `allowed` say what it can",
    "invalid_capabilities": "an item of the list is wrong; the earlier declaration stays",
    "invalid_name": "the text can't be the name of an agent, group or network",
    "invalid_resource": "the text names no shared resource",
    "invalid_scope": "the text is no scope of the given type",
    "invalid_ttl": "the lease is too short or too long",
    "invalid_uri": "the reference is not one printable line",
    "kind_is_fixed": "an agent's kind can't be changed to or from `human`",
    "managed_elsewhere": "the agent is defined elsewhere, and is changed there",
    "name_taken": "an agent or group has this name, or one that is spelled differently and means the same",
    "no_recipient": "nobody would get the message",
    "not_a_member": "the acting job is no live instance of its agent in this network",
    "not_a_participant": "the thread is between others",
    "not_found": "there is no such thing in this network; `kind` says what was looked for",
    "not_a_human": "only a human can be spoken for by an operator",
    "not_offered": "the task is not offered to this instance",
    "not_served_by_jobs": "the agent is a human or a representative",
    "not_yours": "the task or claim is somebody else's",
    "reason_required": "this status needs a reason",
    "search_unavailable": "semantic search can't run or is not ready; `retryable` says whether waiting helps",
    "self_request": "the target is the acting instance itself",
    "target_ended": "the instance has ended; `agent` still reaches its agent",
    "task_taken": "another instance accepted the task first; `assignee` is the winner",
    "too_many_claims": "the instance holds 100 claims already",
}


CONTROL_MEANINGS: Mapping[ControlCode, str] = {
    "confirmation_invalid": "the confirmation is unknown, of another call, too old, or was used",
    "confirmation_pending": "nobody has agreed to the call yet; `confirmation_id` says to what",
    "no_active_network": "the call names no network, and none is active; `networks` says which there are",
    "not_a_job": "the instance is no job, so it can't be stopped or started from here",
    "not_a_representative": "the token's representative was removed",
    "not_granted": "the representative or its person lacks the right; `needs` and `has` say which",
    "not_launched": "the job can't be started as the agent is defined; the message says why",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """A rule's no, for the asking model to act on.

    Attributes:
        code: stable machine-readable name, such as `claim_conflict`.
        message: what is wrong and what to do.
        details: further JSON fields that belong to the code.
    """

    code: RefusalCode | ControlCode
    message: str
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])


def not_found(kind: str, name: str) -> Refusal:
    """There is no such thing in the caller's network; another network's things don't exist either."""
    where = "" if kind == "network" else " in this network"
    return Refusal("not_found", f"there is no {kind} {name!r}{where}", {"kind": kind})

"""Requests for collaboration: a question that its sender waits for, and whose answer outlives the wait.

Waiting time and a request's life are two things: a request that timed out can be answered for a day.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from orchestrator.domain.network.agents import AgentDefinition, AgentKind
from orchestrator.domain.network.chains import Lineage, ancestors, next_lineage
from orchestrator.domain.network.identities import (
    Actor,
    AgentName,
    InstanceId,
    MessageId,
    RequestId,
    ThreadId,
)
from orchestrator.domain.network.refusals import Refusal

DEFAULT_TIMEOUT_S = 120
MAX_TIMEOUT_S = 300
KEPT = timedelta(hours=24)
"""How long a request can be answered after its time, and how long an answer is kept."""
RECENT_TIMEOUT = timedelta(minutes=10)
"""How long a search passes over those that let a request time out."""
_ESTIMATE_S, _ESTIMATE_STEP_S, _ESTIMATE_STEP_CHARS = 60.0, 15.0, 100


@dataclass(frozen=True, slots=True)
class CollaborationRequest:
    """One request, from the moment it was sent.

    Attributes:
        call_id: the sending call; with the sending instance it makes a repeated call the same request.
        lineage: whose work it is part of, the requester last.
        expires_at: until when the sender waits.
        response_id: the target's first reply in the thread.
        consumed_call: the call that took the answer; only that very call gets it again.
    """

    id: RequestId
    requester: AgentName
    requester_instance: InstanceId
    call_id: str
    target: AgentName
    thread_id: ThreadId
    message_id: MessageId
    lineage: Lineage
    created_at: datetime
    expires_at: datetime
    response_id: MessageId | None = None
    answered_at: datetime | None = None
    consumed_call: str = ""

    def other_than(self, agent: AgentName) -> AgentName:
        """The other side of it."""
        return self.target if self.requester == agent else self.requester

    def answerable_by(self, actor: Actor, now: datetime) -> bool:
        """Whether a reply of the actor's is its response: the target's first, within a day of its time."""
        return self.target == actor.agent and self.answered_at is None and now < self.expires_at + KEPT

    def answered(self, response_id: MessageId, now: datetime) -> CollaborationRequest:
        """With its answer."""
        return replace(self, response_id=response_id, answered_at=now)

    def status(self, actor: Actor, now: datetime) -> CheckStatus:
        """What its result is to a call."""
        mine = f"{actor.instance_id} {actor.call_id}"
        over = (self.answered_at or self.expires_at) + KEPT <= now
        if self.requester != actor.agent or over or self.consumed_call not in {"", mine}:
            return CheckStatus.NOT_FOUND
        if self.answered_at is None:
            return CheckStatus.PENDING if now < self.expires_at else CheckStatus.PENDING_AFTER_TIMEOUT
        in_time = self.answered_at <= self.expires_at
        return CheckStatus.COMPLETED if in_time else CheckStatus.COMPLETED_LATE

    def consumed(self, actor: Actor) -> CollaborationRequest:
        """Taken by a call."""
        return replace(self, consumed_call=f"{actor.instance_id} {actor.call_id}")


class CheckStatus(StrEnum):
    """What became of a request, to its requester."""

    COMPLETED = "completed"
    COMPLETED_LATE = "completed_late"
    PENDING = "pending"
    PENDING_AFTER_TIMEOUT = "pending_after_timeout"
    NOT_FOUND = "not_found"
    ERROR = "error"

    @property
    def has_result(self) -> bool:
        """It comes with a response, once."""
        return self in {CheckStatus.COMPLETED, CheckStatus.COMPLETED_LATE}


class Cause(StrEnum):
    """Why a request has no response: `timeout`, or why it was not sent."""

    TIMEOUT = "timeout"
    NOT_FOUND = "target_agent_not_found"
    NOT_ACTIVE = "target_not_active"
    SELF = "self_request_error"
    HUMAN = "target_is_human_error"
    LOOP = "collaboration_loop_detected"
    TOO_LONG = "collaboration_chain_too_long"


@dataclass(frozen=True, slots=True)
class NotSent:
    """A request that was not sent: why, and what to do instead."""

    cause: Cause
    message: str


def wait_s(task: str, timeout_s: float | None) -> float:
    """How long to wait: what was asked for, at most 300 s; when nothing was, less for a short task."""
    if timeout_s is not None:
        return min(timeout_s, MAX_TIMEOUT_S)
    estimate = _ESTIMATE_S + _ESTIMATE_STEP_S * (len(task) // _ESTIMATE_STEP_CHARS)
    return min(estimate, DEFAULT_TIMEOUT_S)


def lineage_of(
    actor: Actor, target: AgentDefinition, behind: Iterable[Lineage], *, active: bool
) -> Lineage | NotSent:
    """The lineage of a request, or why it can't be sent.

    Args:
        actor: who asks.
        target: who is asked.
        behind: of the requests that the actor's instance was given and has not answered, and of its tasks.
        active: whether the target can be reached.
    """
    held = list(behind)
    if target.name == actor.agent:
        return NotSent(Cause.SELF, "you can't send a request to yourself; name another agent")
    if target.kind is AgentKind.HUMAN:
        return NotSent(
            Cause.HUMAN, f"{target.name!r} is a human and answers no requests; write with network_ask"
        )
    if target.name in ancestors(held):
        return NotSent(
            Cause.LOOP,
            f"{target.name!r} waits for the work that you are doing, so it can't be handed on to it: answer "
            "with network_reply, or ask it something with network_ask",
        )
    lineage = next_lineage(actor.agent, [], held)
    if isinstance(lineage, Refusal):
        return NotSent(Cause.TOO_LONG, lineage.message)
    if not active:
        return NotSent(
            Cause.NOT_ACTIVE,
            f"{target.name!r} has no instance that can take it now and is not started by itself; choose "
            "another agent with search_for_agents",
        )
    return lineage

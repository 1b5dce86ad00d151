"""Claims: leases on scopes of work. Coordination, not permission: nothing stops a write."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from orchestrator.domain.network.globs import PathScope, path_scope
from orchestrator.domain.network.identities import Actor, AgentName, ClaimId, InstanceId, TaskId
from orchestrator.domain.network.refusals import Refusal, not_found
from orchestrator.domain.network.resources import resource_key

DEFAULT_TTL_S = 3600
MAX_TTL_S = 86_400
# Each claim is compared with all that hold, in every alternative, while the network stands still.
MAX_ALTERNATIVES = 16
MAX_CLAIMS = 100


class ScopeType(StrEnum):
    """What a scope names."""

    PATH = "path"
    TASK = "task"
    RESOURCE = "resource"


@dataclass(frozen=True, slots=True)
class Scope:
    """What is claimed.

    Attributes:
        text: a normalised path pattern (braces as written), a task's id, or a resource's key.
        resource_id: key of the resource that a path lies in; None covers the path in every resource.
    """

    type: ScopeType
    text: str
    resource_id: str | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """A lease on a scope, held by one instance.

    Attributes:
        ended_at: when it was released, or its instance ended; None while it holds or simply ran out.
    """

    id: ClaimId
    agent: AgentName
    instance_id: InstanceId
    scope: Scope
    task_id: TaskId | None
    created_at: datetime
    expires_at: datetime
    ended_at: datetime | None = None

    def active(self, now: datetime) -> bool:
        """Whether it still keeps others out."""
        return self.ended_at is None and now < self.expires_at


def scope_of(scope_type: ScopeType, text: str, resource_id: str | None) -> Scope | Refusal:
    """Read a scope as it was given."""
    resource = None if resource_id is None else resource_key(resource_id)
    if isinstance(resource, Refusal):
        return resource
    if scope_type is ScopeType.PATH:
        path = _claimable(path_scope(text))
        return path if isinstance(path, Refusal) else Scope(scope_type, path.text, resource)
    if scope_type is ScopeType.RESOURCE:
        key = resource_key(text)
        return key if isinstance(key, Refusal) else Scope(scope_type, key, resource)
    task_id = text.strip()
    if not task_id:
        return Refusal("invalid_scope", "a scope of type 'task' is a task's id; it is empty")
    return Scope(scope_type, task_id, resource)


def _claimable(path: PathScope | Refusal) -> PathScope | Refusal:
    if isinstance(path, PathScope) and len(path.patterns) > MAX_ALTERNATIVES:
        return Refusal(
            "invalid_scope",
            f"its braces write out to {len(path.patterns)} paths; one claim takes at most {MAX_ALTERNATIVES}:"
            " use several claims, or a wider scope",
        )
    return path


def scopes_overlap(a: Scope, b: Scope) -> bool:
    """Whether work on both would meet.

    Paths meet when their patterns share a path and they don't name two different resources. A claim on a
    resource meets the same resource, and paths that are named to lie in it. Tasks meet themselves.
    """
    if a.type is not b.type:
        return _resource_holds_path(a, b) or _resource_holds_path(b, a)
    if a.type is not ScopeType.PATH:
        return a.text == b.text
    if a.resource_id is not None and b.resource_id is not None and a.resource_id != b.resource_id:
        return False
    return _path(a).overlaps(_path(b))


def same_scope(a: Scope, b: Scope) -> bool:
    """Whether both name the same, however a path was spelled."""
    if a.type is ScopeType.PATH is b.type and a.resource_id == b.resource_id:
        return _path(a).patterns == _path(b).patterns
    return a == b


def _resource_holds_path(resource: Scope, path: Scope) -> bool:
    return (
        resource.type is ScopeType.RESOURCE
        and path.type is ScopeType.PATH
        and path.resource_id == resource.text
    )


def _path(scope: Scope) -> PathScope:
    path = path_scope(scope.text)
    # A scope's text was read before, and reads the same again.
    assert isinstance(path, PathScope)
    return path


def claimed(wanted: Claim, active: Iterable[Claim]) -> Claim | Refusal:
    """Decide a claim against those that hold now.

    Returns:
        The claim to store: `wanted`, or the owner's earlier claim on the same scope, renewed; or
        `claim_conflict` with each holder once, or `too_many_claims`. An instance is never in its own way.
    """
    others = list(active)
    conflicts = [
        claim
        for claim in others
        if claim.instance_id != wanted.instance_id and scopes_overlap(claim.scope, wanted.scope)
    ]
    if conflicts:
        return _conflict(wanted, conflicts)
    own = [claim for claim in others if claim.instance_id == wanted.instance_id]
    for claim in own:
        if same_scope(claim.scope, wanted.scope):
            return replace(claim, expires_at=wanted.expires_at, task_id=wanted.task_id or claim.task_id)
    if len(own) >= MAX_CLAIMS:
        return Refusal(
            "too_many_claims",
            f"this instance holds {len(own)} claims and may hold no more; release some, or widen them",
            {"held": len(own)},
        )
    return wanted


def _conflict(wanted: Claim, conflicts: list[Claim]) -> Refusal:
    ordered = sorted(conflicts, key=lambda claim: (claim.created_at, claim.id))
    first = ordered[0]
    more = f" and {len(ordered) - 1} more" if len(ordered) > 1 else ""
    return Refusal(
        "claim_conflict",
        f"{wanted.scope.text!r} overlaps {first.scope.text!r}, held by {first.agent!r} until "
        f"{first.expires_at.isoformat()}{more}; don't work there now: ask the holder or choose other work",
        {"conflicts": [_holder(claim) for claim in ordered]},
    )


def _holder(claim: Claim) -> dict[str, Any]:
    return {
        "claim_id": claim.id,
        "agent": claim.agent,
        "instance_id": claim.instance_id,
        "scope": claim.scope.text,
        "scope_type": claim.scope.type.value,
        "resource_id": claim.scope.resource_id,
        "expires_at": claim.expires_at.isoformat(),
    }


def released(claim: Claim | None, claim_id: str, actor: Actor, now: datetime) -> Claim | Refusal:
    """End a claim early; only its holder may, and doing it again, or after it ran out, changes nothing."""
    if claim is None:
        return not_found("claim", claim_id)
    if claim.instance_id != actor.instance_id:
        return Refusal(
            "not_yours",
            f"claim {claim_id!r} is held by {claim.agent!r}; only its holder can release it",
            {"agent": claim.agent, "instance_id": claim.instance_id},
        )
    return replace(claim, ended_at=now) if claim.active(now) else claim


def expiry(now: datetime, ttl_s: int) -> datetime | Refusal:
    """When a claim of `ttl_s` seconds ends."""
    if not 1 <= ttl_s <= MAX_TTL_S:
        return Refusal("invalid_ttl", f"ttlSeconds must be 1 to {MAX_TTL_S}, not {ttl_s}")
    return now + timedelta(seconds=ttl_s)

"""Who may see and call which tool: one pure function, used by the catalogue and by execution alike."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum

from tool_registry.tool import Approval, ToolDomain, ToolSource, ToolTraits


class ToolState(StrEnum):
    """Whether a registered tool can be used at all."""

    ACTIVE = "active"
    DISABLED = "disabled"
    NEEDS_SCHEMA = "needs_schema"
    NEEDS_CONSENT = "needs_consent"
    FAILED_TO_LOAD = "failed_to_load"


class HiddenReason(StrEnum):
    """Why a hosted job does not see a tool."""

    WRONG_SURFACE = "wrong_surface"
    CONTAINER_ONLY = "container_only"
    MANAGEMENT = "management"
    SOURCE_NOT_HOSTED = "source_not_hosted"
    DISABLED = "disabled"
    NEEDS_SCHEMA = "needs_schema"
    NEEDS_CONSENT = "needs_consent"
    FAILED_TO_LOAD = "failed_to_load"
    APPROVAL_REQUIRED = "approval_required"
    NOT_GRANTED = "not_granted"


HIDDEN_BECAUSE: dict[HiddenReason, str] = {
    HiddenReason.WRONG_SURFACE: "it belongs to another kind of caller",
    HiddenReason.CONTAINER_ONLY: "it runs inside a worker's container only",
    HiddenReason.MANAGEMENT: "it changes the registry itself",
    HiddenReason.SOURCE_NOT_HOSTED: "tools of its source are never hosted",
    HiddenReason.DISABLED: "an operator disabled it",
    HiddenReason.NEEDS_SCHEMA: "it has no usable schema; give it one by an override file",
    HiddenReason.NEEDS_CONSENT: "it asks for what nobody agreed to; read it with 'portside tools approve'",
    HiddenReason.FAILED_TO_LOAD: "it failed to load",
    HiddenReason.APPROVAL_REQUIRED: "it needs approval; grant it to a job by name (--tool-grant)",
    HiddenReason.NOT_GRANTED: "it needs approval, and this job was not granted it (--tool-grant)",
}

_STATE_REASONS = {
    ToolState.DISABLED: HiddenReason.DISABLED,
    ToolState.NEEDS_SCHEMA: HiddenReason.NEEDS_SCHEMA,
    ToolState.NEEDS_CONSENT: HiddenReason.NEEDS_CONSENT,
    ToolState.FAILED_TO_LOAD: HiddenReason.FAILED_TO_LOAD,
}
# Which tools each kind of caller reaches, by the surface that a tool is for.
_REACH: dict[str, frozenset[str]] = {
    "worker": frozenset({"worker", "any"}),
    "agent": frozenset({"worker"}),
    "representative": frozenset({"representative"}),
}
_HOSTED_SOURCES = frozenset({ToolSource.MCP, ToolSource.WASM, ToolSource.NETWORK})


@dataclass(frozen=True, slots=True)
class Visible:
    """It is advertised and can be called."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """It is neither advertised nor callable."""

    reason: HiddenReason


_VISIBLE = Visible()


def hosted_visibility(
    name: str,
    traits: ToolTraits,
    state: ToolState,
    *,
    grants: AbstractSet[str] | None = None,
    surface: str = "worker",
) -> Visible | Hidden:
    """Whether a hosted job, or another kind of caller, sees a tool.

    Args:
        name: the name it is registered under.
        traits: what it declares about itself.
        state: whether it can be used at all.
        grants: names of approval-gated tools that this job may use; None asks for no job in particular.
        surface: the caller's kind: `worker` (a job), `agent` (one from outside) or `representative`.
    """
    if traits.surface not in _REACH[surface]:
        return Hidden(HiddenReason.WRONG_SURFACE)
    if traits.domain is ToolDomain.CONTAINER:
        return Hidden(HiddenReason.CONTAINER_ONLY)
    if traits.source is ToolSource.MANAGEMENT:
        return Hidden(HiddenReason.MANAGEMENT)
    if traits.source not in _HOSTED_SOURCES:
        return Hidden(HiddenReason.SOURCE_NOT_HOSTED)
    if state is not ToolState.ACTIVE:
        return Hidden(_STATE_REASONS[state])
    if traits.approval is Approval.ALWAYS and (grants is None or name not in grants):
        return Hidden(HiddenReason.APPROVAL_REQUIRED if grants is None else HiddenReason.NOT_GRANTED)
    return _VISIBLE

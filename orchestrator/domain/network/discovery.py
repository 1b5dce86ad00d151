"""Who fits a need: an order that the same network always answers, with the reasons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from orchestrator.domain.network.agents import AgentDefinition, Instance
from orchestrator.domain.network.capabilities import Capability, slug

_RESOURCE_POINTS = 4
_ACTION_POINTS = 2
_CAPABILITY_POINTS = 1
_BOTH_POINTS = 2


@dataclass(frozen=True, slots=True)
class Candidate:
    """An agent with its live instances.

    Attributes:
        score: higher fits better; 0 when nothing was asked for.
        reasons: what made the score.
    """

    definition: AgentDefinition
    instances: tuple[Instance, ...]
    available: bool
    score: int = 0
    reasons: tuple[str, ...] = ()


def candidates(
    definitions: Sequence[AgentDefinition],
    instances: Sequence[Instance],
    now: datetime,
    *,
    resource: str | None = None,
    action: str | None = None,
) -> list[Candidate]:
    """Agents that fit, best first: by score, then the available ones, then by name.

    With neither `resource` (canonical) nor `action` every agent fits; with either, those that match neither
    are left out. An action matches a responsibility's action, or a capability's id or name; spelling is
    compared as ids are, so `Code Review` is `code-review`.
    """
    found: list[Candidate] = []
    for definition in definitions:
        own = tuple(
            sorted(
                (one for one in instances if one.agent == definition.name and one.live),
                key=lambda one: (not one.available(now), one.joined_at, one.id),
            )
        )
        points = _points(definition, own, resource, action)
        if points or (resource is None and action is None):
            found.append(
                Candidate(
                    definition,
                    own,
                    any(one.available(now) for one in own),
                    sum(worth for worth, _ in points),
                    tuple(why for _, why in points),
                )
            )
    return sorted(found, key=lambda one: (-one.score, not one.available, one.definition.name))


def _points(
    definition: AgentDefinition, instances: Iterable[Instance], resource: str | None, action: str | None
) -> list[tuple[int, str]]:
    points: list[tuple[int, str]] = []
    wanted = None if action is None else slug(action)
    held = [duty for duty in definition.responsibilities if resource and duty.resource_key == resource]
    acting = [
        duty
        for duty in definition.responsibilities
        if wanted and wanted in {slug(one) for one in duty.actions}
    ]
    if held:
        points.append((_RESOURCE_POINTS, f"is responsible for {resource}"))
    if acting:
        points.append((_ACTION_POINTS, f"is responsible for the action {action!r}"))
    if any(duty in acting for duty in held):
        points.append((_BOTH_POINTS, f"is responsible for {action!r} in {resource}"))
    if wanted and _able(definition.capabilities, wanted):
        points.append((_CAPABILITY_POINTS, f"has the capability {action!r}"))
    if wanted and any(_able(one.capabilities, wanted) for one in instances):
        points.append((_CAPABILITY_POINTS, f"declares the capability {action!r} itself"))
    return points


def _able(capabilities: Iterable[Capability], wanted: str) -> bool:
    return any(wanted in {slug(one.id), slug(one.name)} for one in capabilities)

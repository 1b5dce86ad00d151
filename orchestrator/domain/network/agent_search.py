"""Searching for agents: what is asked for, who is left out, and what is said of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.domain.network.agents import AgentDefinition
from orchestrator.domain.network.capabilities import Capability

DEFAULT_TOP_K = 5
MAX_TOP_K = 20
DEFAULT_STRICTNESS = 0.2


class OutputDetail(StrEnum):
    """How much of a profile a result shows."""

    MINIMAL = "minimal"
    SUMMARY = "summary"
    CAPABILITIES = "capabilities"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class AgentQuery:
    """What a caller looks for.

    Attributes:
        strictness: the least similarity, from 0 to 1.
        tags: a result carries one of these at least; none is no condition.
    """

    text: str
    top_k: int = DEFAULT_TOP_K
    strictness: float = DEFAULT_STRICTNESS
    tags: tuple[str, ...] = ()


class LeftOut(StrEnum):
    """Why an agent is no result, in the order in which it is looked at; the value ends "N of M ..."."""

    SELF = "you"
    HUMAN = "human"
    UNAVAILABLE = "not available"
    IN_CONVERSATION = "in a conversation with you that is not answered yet"
    TIMED_OUT = "silent: your request to it timed out in the last 10 minutes"
    UNTAGGED = "without any of the tags"
    TOO_FAR = "not similar enough"


@dataclass(frozen=True, slots=True)
class Match:
    """An agent that fits.

    Attributes:
        similarity: from 0 to 1.
        declared: what its live instances say they can do besides its profile.
    """

    agent: AgentDefinition
    similarity: float
    declared: tuple[Capability, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to.

    Attributes:
        matches: best first, at most `top_k`.
        agents: how many there are in the network.
        left_out: how many are no result, by the first reason that holds.
        nearest: the best similarity among those that are `TOO_FAR`.
    """

    query: AgentQuery
    matches: Sequence[Match]
    agents: int
    left_out: dict[LeftOut, int]
    nearest: float | None = None

    @property
    def message(self) -> str:
        """What was found, who was left out, and what can be done about it."""
        return " ".join([_found(self), *_left_out(self), *_advice(self)])


def _found(found: Found) -> str:
    fitting = found.agents - sum(found.left_out.values())
    if not found.matches:
        return "No agent fits the query."
    if fitting > len(found.matches):
        return f"Found {fitting} agents that fit the query; these are the best {len(found.matches)}."
    return f"Found {fitting} {'agent that fits' if fitting == 1 else 'agents that fit'} the query."


def _left_out(found: Found) -> list[str]:
    parts = [f"{count} {reason.value}" for reason, count in found.left_out.items() if count]
    if not parts:
        return []
    all_of_them = f"{found.agents} agent{'s' * (found.agents != 1)}"
    return [f"Of {all_of_them} in the network these were left out: {'; '.join(parts)}."]


def _advice(found: Found) -> list[str]:
    if found.matches:
        return []
    if found.nearest is not None:
        limit = f"below the strictness of {found.query.strictness:g}"
        return [
            f"The nearest of those has a similarity of {found.nearest:.2f}, {limit}.",
            "Describe the need in other words, lower strictness, or do it yourself.",
        ]
    if found.left_out.get(LeftOut.UNTAGGED):
        return ["Tags are exact: leave include_tags out, or see an agent's tags with network_discover."]
    return ["Search again later, or do it yourself."]

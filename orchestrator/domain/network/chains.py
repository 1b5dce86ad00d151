"""Chains of delegation: no agent comes twice in one, and both length and number are bounded.

The chain belongs to the work, not to the run: it is made of the tasks that the delegating instance has
accepted and not finished and of the requests that it was given and has not answered, and kept with the new
one. No argument names it, so no agent can shorten it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from orchestrator.domain.network.identities import AgentName, TaskId
from orchestrator.domain.network.refusals import Refusal

MAX_HOPS = 5
# Enough for a project; agents that each split their work in five would make thousands of tasks in five hops.
MAX_TASKS_BELOW = 50


@dataclass(frozen=True, slots=True)
class Lineage:
    """Where a task or a request comes from.

    Attributes:
        agents: everybody who delegated on the way to it, its creator last.
        hops: how many delegations lie on the longest way to it, its own included.
        parents: the tasks that its creator was at work on.
    """

    agents: tuple[AgentName, ...] = ()
    hops: int = 0
    parents: tuple[TaskId, ...] = ()


def ancestors(held: Iterable[Lineage]) -> frozenset[AgentName]:
    """Everybody whose work an instance does that has accepted tasks of these lineages."""
    return frozenset(agent for lineage in held for agent in lineage.agents)


def next_lineage(
    creator: AgentName, held: Collection[tuple[TaskId, Lineage]], requests: Collection[Lineage] = ()
) -> Lineage | Refusal:
    """The lineage of a task or request that comes from an instance with other work at hand.

    Args:
        creator: the instance's agent.
        held: the tasks that it has accepted and not finished.
        requests: the lineages of the requests that it was given and has not answered.

    Returns:
        The lineage, or `collaboration_chain_too_long`.
    """
    lineages = [*(lineage for _, lineage in held), *requests]
    hops = 1 + max((lineage.hops for lineage in lineages), default=0)
    if hops > MAX_HOPS:
        return Refusal(
            "collaboration_chain_too_long",
            f"this work was delegated {MAX_HOPS} times already; do it yourself, or report it as failed",
            {"hops": hops, "max_hops": MAX_HOPS},
        )
    before = [agent for lineage in lineages for agent in lineage.agents]
    return Lineage((*dict.fromkeys(before), creator), hops, tuple(task_id for task_id, _ in held))


def over_budget(below: Mapping[TaskId, int]) -> Refusal | None:
    """`delegation_budget_spent` when the work of one of these roots has been split often enough.

    Args:
        below: how many tasks each root of the delegating instance's work has below it.
    """
    spent = sorted(root for root, count in below.items() if count >= MAX_TASKS_BELOW)
    if not spent:
        return None
    return Refusal(
        "delegation_budget_spent",
        f"{MAX_TASKS_BELOW} tasks were made already for the work that task {spent[0]} began; do the rest "
        "yourself, or report what is left",
        {"root": spent[0], "max_tasks": MAX_TASKS_BELOW},
    )


def loop(targets: Collection[AgentName], behind: Collection[AgentName]) -> Refusal | None:
    """`collaboration_loop_detected` when all that could take the work wait for it themselves."""
    if not targets or not set(targets) <= set(behind):
        return None
    name = min(targets)
    return Refusal(
        "collaboration_loop_detected",
        f"{name!r} delegated the work that you are doing, so it can't be given back; finish it, report what "
        "blocks it, or ask with network_ask",
        {"chain": sorted(behind)},
    )

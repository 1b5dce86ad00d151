"""The operator API's messages about a network as a whole, and its claims."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel

from orchestrator.domain.network.claims import Claim
from orchestrator.http.task_messages import TaskView
from orchestrator.services.network_overview import NetworkStatus


class StatusView(BaseModel):
    """A network in numbers; the tasks by their state."""

    network: str
    agents: int
    available: int
    tasks: dict[str, int]
    blocked: list[TaskView]
    claims: int
    undelivered: int

    @classmethod
    def of(cls, status: NetworkStatus) -> StatusView:
        """The view of a network."""
        return cls(
            network=status.network,
            agents=status.agents,
            available=status.available,
            tasks={state.value: count for state, count in sorted(status.tasks.items())},
            blocked=[TaskView.of(one) for one in status.blocked],
            claims=status.claims,
            undelivered=status.undelivered,
        )


class ClaimView(BaseModel):
    """A claim that holds."""

    claim_id: str
    agent: str
    scope: str
    scope_type: str
    resource_id: str | None
    task_id: str | None
    expires_at: datetime

    @classmethod
    def of(cls, claim: Claim) -> ClaimView:
        """The view of a claim."""
        return cls(
            claim_id=claim.id,
            agent=claim.agent,
            scope=claim.scope.text,
            scope_type=claim.scope.type.value,
            resource_id=claim.scope.resource_id,
            task_id=claim.task_id,
            expires_at=claim.expires_at,
        )

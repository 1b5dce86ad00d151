"""Claims of a network: granted one at a time, so that of two that meet exactly one wins."""

from __future__ import annotations

from orchestrator.domain.network.claims import Claim, ScopeType, claimed, expiry, released, scope_of
from orchestrator.domain.network.identities import Actor, ClaimId, TaskId
from orchestrator.domain.network.refusals import not_found
from orchestrator.ports.ids import Ids
from orchestrator.ports.network import NetworkStore, NetworkTransaction
from orchestrator.services.network_members import Refused, accepted, acting_member
from tool_registry.clock import Clock


class NetworkClaims:
    """Leases on scopes of work.

    Args:
        store: where the network is kept.
        clock: tells when a claim ends.
        ids: names new claims.
    """

    def __init__(self, store: NetworkStore, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids

    async def claim(
        self,
        actor: Actor,
        scope: str,
        *,
        scope_type: ScopeType,
        resource_id: str | None,
        task_id: str | None,
        ttl_s: int,
    ) -> Claim:
        """Claim a scope, or renew the actor's own claim on it.

        Raises:
            Refused: `claim_conflict` with the holders; `invalid_scope`, `invalid_resource`, `invalid_ttl`;
                `too_many_claims`; `not_found` for a task that is not in this network.
        """
        wanted_scope = accepted(scope_of(scope_type, scope, resource_id))
        task = None if task_id is None else TaskId(task_id)

        def grant(tx: NetworkTransaction) -> Claim:
            acting_member(tx, actor)
            if task is not None and tx.task(task) is None:
                raise Refused(not_found("task", task))
            # Read under the lock: a claim that had to wait is as long as it was asked to be.
            now = self._clock.now()
            wanted = Claim(
                id=ClaimId(self._ids.new()),
                agent=actor.agent,
                instance_id=actor.instance_id,
                scope=wanted_scope,
                task_id=task,
                created_at=now,
                expires_at=accepted(expiry(now, ttl_s)),
            )
            claim = accepted(claimed(wanted, tx.active_claims(now)))
            tx.put_claim(claim)
            return claim

        return await self._store.change(actor.network, grant)

    async def release(self, actor: Actor, claim_id: str) -> Claim:
        """End a claim of the actor's; doing it again changes nothing.

        Raises:
            Refused: `not_found`, or `not_yours` with the holder.
        """

        def end(tx: NetworkTransaction) -> Claim:
            acting_member(tx, actor)
            claim = tx.claim(ClaimId(claim_id))
            ended = accepted(released(claim, claim_id, actor, self._clock.now()))
            tx.put_claim(ended)
            return ended

        return await self._store.change(actor.network, end)

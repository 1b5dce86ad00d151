"""Claims under arbitrary requests of several instances, as time goes by."""

from __future__ import annotations

from datetime import timedelta
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.network.claims import Claim, Scope, ScopeType, claimed, scope_of, scopes_overlap
from orchestrator.domain.network.identities import AgentName, ClaimId, InstanceId
from orchestrator.domain.network.refusals import Refusal
from tests.support.networks import START

requests = st.lists(
    st.tuples(
        st.sampled_from(["i1", "i2", "i3"]),
        st.sampled_from(
            ["src", "src/*.py", "src/*.go", "src/a.py", "src/[ab].py", "**/a.py", "lib/**", "docs"]
        ),
        st.integers(1, 20),
        st.integers(0, 8),
    ),
    max_size=25,
)


def scope(text: str) -> Scope:
    read = scope_of(ScopeType.PATH, text, None)
    assert isinstance(read, Scope)
    return read


@given(requests)
def test_no_two_instances_ever_hold_overlapping_scopes(steps: list[tuple[str, str, int, int]]):
    """BR-129, BR-130: a claim is granted exactly when nobody else holds what it overlaps."""
    now, held = START, dict[str, Claim]()
    for number, (owner, text, ttl_s, wait_s) in enumerate(steps):
        now += timedelta(seconds=wait_s)
        active = [one for one in held.values() if one.active(now)]
        wanted = Claim(
            ClaimId(f"c{number}"), AgentName("a"), InstanceId(owner), scope(text), None, now,
            now + timedelta(seconds=ttl_s),
        )  # fmt: skip
        in_the_way = {
            one.id for one in active if one.instance_id != owner and scopes_overlap(one.scope, wanted.scope)
        }
        answer = claimed(wanted, active)
        if isinstance(answer, Refusal):
            assert {one["claim_id"] for one in answer.details["conflicts"]} == in_the_way
            assert in_the_way
            continue
        assert not in_the_way
        assert (answer.instance_id, answer.scope, answer.expires_at) == (
            owner,
            wanted.scope,
            wanted.expires_at,
        )
        held[answer.id] = answer
        for one, other in combinations((c for c in held.values() if c.active(now)), 2):
            assert one.instance_id == other.instance_id or not scopes_overlap(one.scope, other.scope)
            assert one.instance_id != other.instance_id or one.scope != other.scope

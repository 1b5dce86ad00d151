"""Claims through the tools: granted, renewed, run out, released (WN-5)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.network_store import MemoryNetworkStore
from tests.support.networks import Caller, Refusal, World


@pytest.fixture
def world() -> World:
    return World(MemoryNetworkStore())


async def refused(call: Any) -> dict[str, Any]:
    with pytest.raises(Refusal) as no:
        await call
    return no.value.result


async def two(world: World) -> tuple[Caller, Caller]:
    return await world.instance("a1", "a"), await world.instance("b1", "b")


async def test_a_conflict_names_each_holder_its_scope_and_its_end_once(world: World):
    """BR-129: each conflict names the holder, the pattern and the expiry, once."""
    a, b = await two(world)
    await a("claim", scope="src/**/*.py", ttlSeconds=60)
    await a("claim", scope="src/{a,b}/*")
    await a("claim", scope="lib")
    conflict = await refused(b("claim", scope="./src/x/../a"))
    assert conflict["code"] == "claim_conflict"
    assert [(one["agent"], one["scope"], one["expires_at"]) for one in conflict["conflicts"]] == [
        ("a", "src/**/*.py", "2026-01-02T03:05:05+00:00"),
        ("a", "src/{a,b}/*", "2026-01-02T04:04:05+00:00"),
    ]
    assert "'src/a' overlaps 'src/**/*.py', held by 'a'" in conflict["message"]
    assert (await b("claim", scope="docs"))["expires_at"] == "2026-01-02T04:04:05+00:00"


async def test_a_claim_runs_out_to_the_second(world: World):
    """BR-126, BR-130: a dead agent's claim blocks nobody after its time, and is not renewed then."""
    a, b = await two(world)
    mine = await a("claim", scope="x.py", ttlSeconds=5)
    world.clock.advance(4.999)
    assert (await refused(b("claim", scope="x.py")))["code"] == "claim_conflict"
    world.clock.advance(0.001)
    theirs = await b("claim", scope="x.py")
    late = await refused(a("claim", scope="x.py"))
    assert [one["claim_id"] for one in late["conflicts"]] == [theirs["claim_id"]]
    assert (await a("release", claimId=mine["claim_id"]))["released_at"] is None
    assert (await refused(a("claim", scope="x.py")))["code"] == "claim_conflict"


async def test_claiming_the_same_scope_again_renews_it(world: World):
    a, _ = await two(world)
    first = await a("claim", scope="src/", ttlSeconds=10)
    world.clock.advance(9)
    again = await a("claim", scope="./src", ttlSeconds=10)
    assert again["claim_id"] == first["claim_id"]
    assert again["expires_at"] == "2026-01-02T03:04:24+00:00"
    assert (await a("claim", scope="src/sub"))["claim_id"] != first["claim_id"]


async def test_only_the_holder_releases_and_twice_is_fine(world: World):
    """BR-130: a stranger's release and an unknown id are no success."""
    a, b = await two(world)
    claim = (await a("claim", scope="x.py"))["claim_id"]
    no = await refused(b("release", claimId=claim))
    assert (no["code"], no["agent"]) == ("not_yours", "a")
    assert (await refused(a("release", claimId="999")))["code"] == "not_found"
    assert (await refused(b("claim", scope="x.py")))["code"] == "claim_conflict"
    first = await a("release", claimId=claim)
    world.clock.advance(1)
    assert await a("release", claimId=claim) == first
    await b("claim", scope="x.py")


async def test_an_instances_end_frees_its_claims_at_once(world: World):
    """BR-126, BR-130: a cancelled job holds nothing, and can't claim any more."""
    a, b = await two(world)
    await a("claim", scope="x.py")
    await a("claim", scope="y.py")
    await world.service.leave("a1", "cancelled")
    await b("claim", scope=".")
    assert (await refused(a("claim", scope="z.py")))["code"] == "not_a_member"
    await world.service.leave("a1", "again")
    await world.service.leave("unknown", "never was")


async def test_two_instances_of_one_agent_keep_out_of_each_others_way(world: World):
    a1, a2 = await world.instance("a1"), await world.instance("a2")
    await a1("claim", scope="src")
    assert (await refused(a2("claim", scope="src/x.py")))["conflicts"][0]["instance_id"] == "a1"


async def test_scopes_that_mean_nothing_are_refused(world: World):
    a, _ = await two(world)
    assert (await refused(a("claim", scope="../other")))["code"] == "invalid_scope"
    assert (await refused(a("claim", scope=" ", scopeType="task")))["code"] == "invalid_scope"
    assert (await refused(a("claim", scope="/srv", scopeType="resource")))["code"] == "invalid_resource"
    assert (await refused(a("claim", scope="src", resourceId="./here")))["code"] == "invalid_resource"
    assert (await refused(a("claim", scope="src", ttlSeconds=0)))["code"] == "invalid_ttl"
    assert (await refused(a("claim", scope="src", ttlSeconds=86_401)))["code"] == "invalid_ttl"
    assert (await refused(a("claim", scope="src", taskId="none")))["code"] == "not_found"


async def test_a_scope_of_many_paths_is_refused_since_all_wait_while_they_are_compared(world: World):
    """PD-76, WN-5: 576 paths against 576 others took 38 s, in which the network stood still."""
    a, _ = await two(world)
    letters = ",".join("abcdefghijklmnopqrstuvwx")
    no = await refused(a("claim", scope=f"{{{letters}}}{{{letters}}}"))
    assert (no["code"], "576 paths" in no["message"], "several claims" in no["message"]) == (
        "invalid_scope",
        True,
        True,
    )
    assert (await a("claim", scope="{a,b,c,d}/{a,b,c,d}"))["scope"] == "{a,b,c,d}/{a,b,c,d}"


async def test_an_instance_holds_so_many_claims_and_no_more(world: World):
    """PD-76, WN-5: what it holds can be renewed and released, and makes room."""
    a, b = await two(world)
    held = [await a("claim", scope=f"{number}.py") for number in range(100)]
    no = await refused(a("claim", scope="more.py"))
    assert (no["code"], no["held"]) == ("too_many_claims", 100)
    assert (await a("claim", scope="7.py"))["claim_id"] == held[7]["claim_id"]
    await b("claim", scope="more.py")
    await a("release", claimId=held[0]["claim_id"])
    await a("claim", scope="another.py")


async def test_resources_are_claimed_by_any_of_their_addresses(world: World):
    a, b = await two(world)
    claim = await a("claim", scope="git@H.org:o/r.git", scopeType="resource")
    assert claim["scope"] == "h.org/o/r"
    assert (await refused(b("claim", scope="https://h.org/o/r", scopeType="resource")))[
        "code"
    ] == "claim_conflict"
    assert (await refused(b("claim", scope="src", resourceId="https://h.org/o/r")))[
        "code"
    ] == "claim_conflict"
    await b("claim", scope="src")

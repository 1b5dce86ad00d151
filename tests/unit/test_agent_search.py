"""Who a search finds, whom it leaves out and why, and what it costs again (AT-2, AT-3, AT-8)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import anyio
import pytest

from orchestrator.domain.network.agents import AgentKind, LaunchSettings, Skill
from orchestrator.domain.network.capabilities import Capability
from tests.fakes.embedder import MemoryProfileVectorStore, WordEmbedder
from tests.fakes.network_store import MemoryNetworkStore
from tests.support.deadline import eventually, within
from tests.support.networks import Caller, Refusal, World

AUTO = LaunchSettings(autostart=True)


class Given:
    """A network with what a search runs on in view."""

    def __init__(self) -> None:
        self.embedder = WordEmbedder()
        self.vectors = MemoryProfileVectorStore()
        self.store = MemoryNetworkStore()
        self.world = self.started()

    def started(self, **more: Any) -> World:
        """The network as a new process sees it."""
        return World(self.store, embedder=self.embedder, vectors=self.vectors, **more)


@pytest.fixture
def given() -> Given:
    return Given()


@pytest.fixture
def world(given: Given) -> World:
    return given.world


async def search(caller: Caller, query: str = "paint walls", **more: Any) -> tuple[list[str], str]:
    found = await caller("search_for_agents", query=query, **more)
    return [one["agent_id"] for one in found["results"]], found["message"]


async def test_the_nearest_come_first_and_equals_by_name(world: World):
    for name, summary in {"c": "paint walls", "b": "paint walls", "far": "knit", "d": "paint doors"}.items():
        await world.agent(name, summary=summary, launch=AUTO)
    a = await world.instance("a1", "a")
    found = await a("search_for_agents", query="paint walls", top_k=20)
    scores = [one["similarity_score"] for one in found["results"]]
    assert [one["agent_id"] for one in found["results"]] == ["b", "c", "d"]
    assert scores == sorted(scores, reverse=True)
    assert all(score == round(score, 4) for score in scores)
    assert (await search(a, strictness=0.9))[0] == ["b", "c"]
    assert (await search(a, top_k=1))[0] == ["b"]
    assert "Found 3 agents that fit the query; these are the best 1." in (await search(a, top_k=1))[1]


async def test_every_part_of_a_profile_is_searched(world: World):
    """AT-2: name, summary, description, capabilities, skills, tags, examples, and what instances declare."""
    parts: dict[str, Any] = {
        "one": {"summary": "alpha"}, "two": {"description": "beta"}, "three": {"skills": (Skill("gamma"),)},
        "four": {"capabilities": (Capability("x", "delta", "epsilon"),)}, "five": {"tags": ("zeta",)},
        "six": {"examples": ("eta",)}, "seven-theta": {},
    }  # fmt: skip
    for name, profile in parts.items():
        await world.agent(name, launch=AUTO, **profile)
    eight = await world.instance("e1", "eight")
    await eight("register_capabilities", capabilities=[{"name": "iota", "description": "kappa"}])
    a = await world.instance("a1", "a")
    words = {
        "alpha": "one", "beta": "two", "gamma": "three", "delta": "four", "epsilon": "four", "zeta": "five",
        "eta": "six", "theta": "seven-theta", "iota": "eight", "kappa": "eight",
    }  # fmt: skip
    assert {word: (await search(a, word))[0] for word in words} == {
        word: [name] for word, name in words.items()
    }


async def test_who_can_take_no_new_work_is_left_out_and_counted(world: World):
    a = await world.instance("a1", "a")
    paints: dict[str, Any] = {"summary": "paint walls"}
    await world.agent("person", kind=AgentKind.HUMAN, **paints)
    await world.agent("nobody-there", **paints)
    await world.agent("started", launch=AUTO, **paints)
    for name in ("busy", "asking", "silent", "answered", "there"):
        await world.agent(name, **paints)
    members = {name: await world.instance(f"{name}1", name) for name in ("asking", "there")}
    for name in ("silent", "answered"):
        members[name] = await world.instance(f"{name}1", name)
        await cut_off(a, name, timeout=1)
    (item,) = (await members["answered"]("inbox"))["items"]
    world.clock.advance(2)
    await members["answered"]("reply", threadId=item["thread_id"], body="Late.")
    members["busy"] = await world.instance("busy1", "busy")
    await cut_off(a, "busy", timeout=300)
    await cut_off(members["asking"], "a", timeout=300)
    names, message = await search(a, top_k=20)
    assert names == ["answered", "started", "there"]
    assert message == (
        "Found 3 agents that fit the query. Of 9 agents in the network these were left out: 1 you; 1 human; 1 not "
        "available; 2 in a conversation with you that is not answered yet; 1 silent: your request to it timed "
        "out in the last 10 minutes."
    )
    world.clock.advance(500)
    for caller in members.values():
        await world.service.heartbeat(caller.instance_id)
    assert (await search(a, top_k=20))[0] == ["answered", "asking", "started", "there"]
    world.clock.advance(500)
    for caller in members.values():
        await world.service.heartbeat(caller.instance_id)
    assert (await search(a, top_k=20))[0] == ["answered", "asking", "busy", "silent", "started", "there"]


async def cut_off(caller: Caller, target: str, **more: Any) -> None:
    """A request whose sender waits no longer."""
    sending = asyncio.ensure_future(
        caller("send_collaboration_request", target_agent_id=target, task="?", **more)
    )
    await anyio.wait_all_tasks_blocked()
    sending.cancel()
    await asyncio.gather(sending, return_exceptions=True)


async def test_conditions_come_before_top_k(world: World):
    """A caller whose nearest peers are all busy still gets the next ones."""
    for number in range(12):
        await world.agent(f"near-{number}", summary="paint walls")
    await world.agent("next", summary="paint walls and doors", launch=AUTO)
    a = await world.instance("a1", "a")
    assert (await search(a, top_k=1))[0] == ["next"]


async def test_tags_are_exact_and_one_is_enough(world: World):
    for name, tags in {"b": ("Home", "x"), "c": ("home",), "d": ()}.items():
        await world.agent(name, summary="paint walls", tags=tags, launch=AUTO)
    a = await world.instance("a1", "a")
    assert (await search(a, include_tags=["home"]))[0] == ["c"]
    assert set((await search(a, include_tags=["home", "x"]))[0]) == {"b", "c"}
    assert set((await search(a, include_tags=[]))[0]) == {"b", "c", "d"}
    names, message = await search(a, include_tags=["HOME"])
    assert names == []
    assert "3 without any of the tags" in message
    assert "Tags are exact" in message


async def test_nobody_fits_is_an_answer_that_says_how_near_the_nearest_is(world: World):
    """AT-2: an unrelated query has no results."""
    await world.agent("b", summary="paint walls", launch=AUTO)
    a = await world.instance("a1", "a")
    names, message = await search(a, "knit socks")
    assert names == []
    assert "1 you; 1 not similar enough" in message
    assert "The nearest of those has a similarity of 0.00, below the strictness of 0.2." in message
    assert (await search(a, "knit socks", strictness=0.0))[0] == ["b"]


async def test_an_outage_is_an_error_that_says_what_to_do(given: Given):
    """Never an empty result, never another way of searching."""
    a = await given.world.instance("a1", "a")
    given.embedder.broken = "the model is not installed: run scripts/setup"
    with pytest.raises(Refusal) as no:
        await search(a)
    assert no.value.code == "search_unavailable"
    assert "run scripts/setup" in no.value.result["message"]
    assert no.value.result["retryable"] is False
    given.embedder.broken = ""
    assert (await search(a))[0] == []


async def test_a_profile_is_embedded_once_also_over_restarts_and_again_when_it_changes(given: Given):
    await given.world.agent("b", summary="paint walls", launch=AUTO)
    a = await given.world.instance("a1", "a")
    await search(a)
    given.embedder.seen.clear()
    await search(a)
    assert given.embedder.seen == ["paint walls"], "the query alone"
    given.embedder.seen.clear()
    await search(await given.started().instance("a1", "a"))
    assert given.embedder.seen == ["paint walls"], "a new process finds what the last one made"
    given.embedder.seen.clear()
    b = await given.world.instance("b1", "b")
    await b("register_capabilities", capabilities=[{"name": "knitting"}])
    assert (await search(a, "knitting"))[0] == ["b"]
    assert given.embedder.seen == ["b. paint walls. knitting", "knitting", "knitting"]
    await b("register_capabilities", capabilities=[])
    assert (await search(a, "knitting"))[0] == []
    await given.world.agent("c", summary="knitting", launch=AUTO)
    assert (await search(a, "knitting"))[0] == ["c"]


async def test_what_did_not_change_is_neither_read_nor_embedded_again(given: Given):
    """AT-8: the cost of a change is that of what changed, and who is gone is found no more."""
    for name in ("b", "c", "d"):
        await given.world.agent(name, summary=f"paint {name}", launch=AUTO)
    a = await given.world.instance("a1", "a")
    assert (await search(a))[0] == ["b", "c", "d"]
    given.store.given.clear()
    given.embedder.seen.clear()
    await search(a)
    assert (given.store.given, given.embedder.seen) == ([], ["paint walls"])
    agents = given.world.service.agents
    c = (await agents.get("local", "c")).definition
    for change in ({"version": "2"}, {"summary": "knit"}):
        c = replace(c, **change)
        await agents.update("local", c)
        given.store.given.clear()
        given.embedder.seen.clear()
        found = await a("search_for_agents", query="knit", top_k=20, output_detail="full", strictness=0)
        assert given.store.given == ["c"]
        assert next(one for one in found["results"] if one["agent_id"] == "c")["version"] == "2"
    assert given.embedder.seen == ["c. knit", "knit", "knit"]
    assert (await search(a))[0] == ["b", "d"]
    await agents.remove("local", "b")
    given.store.given.clear()
    assert (await search(a))[0] == ["d"]
    assert given.store.given == []


async def test_what_takes_long_to_prepare_goes_on_without_its_searcher(given: Given):
    """AT-8: a search that gave up finds the vectors ready later."""
    world = given.started(patience_s=0.05)
    await world.agent("b", summary="paint walls", launch=AUTO)
    a = await world.instance("a1", "a")
    given.embedder.gate = anyio.Event()
    with pytest.raises(Refusal) as no:
        await search(a)
    assert (no.value.code, no.value.result["retryable"]) == ("search_unavailable", True)
    assert "0 of 2 profiles" in no.value.result["message"]
    given.embedder.gate.set()
    await eventually(lambda: len(given.vectors.rows) == 2)
    assert (await within(5.0, search(a)))[0] == ["b"]
    await world.search.close()


async def test_another_networks_agents_are_not_found(world: World):
    await world.agent("far", network="other", summary="paint walls", launch=AUTO)
    names, message = await search(await world.instance("a1", "a"))
    assert names == []
    assert "Of 1 agent in the network" in message

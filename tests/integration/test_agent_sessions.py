"""PD-43: an agent from outside is a full member while its session lasts, and gives back what it took."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from traceback import format_exception
from typing import Any

import pytest
from mcp.client.client import ConnectMode

from orchestrator.adapters.db.stores import Stores
from orchestrator.domain.network.agents import AgentDefinition, AgentKind
from orchestrator.domain.network.identities import AgentName, InstanceId, NetworkName
from orchestrator.errors import Unauthorised
from orchestrator.ports.member_tokens import Holder, MemberToken
from orchestrator.ports.network import NetworkReader
from orchestrator.services.agent_sessions import AgentSessions
from orchestrator.services.member_tokens import MemberTokens
from orchestrator.services.network import NetworkService
from orchestrator.services.network_members import Refused
from orchestrator.services.signing import TokenSigner
from tests.fakes.network_store import MemoryNetworkStore
from tests.support.networks import CountedIds, RandomIds, SetClock, World
from tests.support.orchestrator import Wired, wired
from tests.support.outside import Refused as CallRefused
from tests.support.outside import agent, connected, token_for
from worker.clock import SystemClock

NOW = datetime(2026, 1, 2, tzinfo=UTC)
HERE = NetworkName("local")


@pytest.fixture
async def service(home: Path) -> AsyncIterator[Wired]:
    async with wired(home, listen="127.0.0.1:0") as running:
        yield running


async def read(service: Wired, look: Callable[[NetworkReader], Any]) -> Any:
    return await service.stores.network.read(HERE, look)


async def live(service: Wired) -> dict[str, list[str]]:
    """The ids of live instances, by agent."""
    found: dict[str, list[str]] = {}
    for one in await read(service, lambda reader: reader.live_instances()):
        found.setdefault(one.agent, []).append(one.id)
    return found


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_agents_ask_answer_delegate_and_claim_as_jobs_do(service: Wired, mode: ConnectMode) -> None:
    """WN-3: found, asked, and read by `network_inbox`; WN-5: their claims count."""
    async with agent(service, "boss", mode=mode) as boss, agent(service, "helper", mode=mode) as helper:
        await helper("network_whoami")
        found = {one["name"]: one for one in (await boss("network_discover"))["agents"]}
        assert found["helper"]["available"]
        asked = await boss("network_ask", body="how?", toAgent="helper")
        (item,) = (await helper("network_inbox"))["items"]
        assert (item["kind"], item["body"], item["from"]["agent"]) == ("ask", "how?", "boss")
        await helper("network_reply", threadId=asked["thread_id"], body="so")
        (answer,) = (await boss("network_inbox"))["items"]
        assert answer["body"] == "so"
        task = (await boss("network_delegate", objective="build", toAgent="helper"))["task"]
        assert task["state"] == "offered"
        await helper("network_task_update", taskId=task["task_id"], status="accepted")
        assert (await boss("network_task_get", taskId=task["task_id"]))["task"]["state"] == "accepted"
        await helper("network_claim", scope="src")
        with pytest.raises(CallRefused) as refused:
            await boss("network_claim", scope="src/*.py")
        assert refused.value.code == "claim_conflict"


async def test_agents_find_ask_and_answer_one_another_by_the_collaboration_tools(service: Wired) -> None:
    """One agent at the discovery and the communication endpoint, the other as a full member."""
    async with (
        agent(service, "boss", "/mcp/discovery") as seeker,
        agent(service, "boss", "/mcp/communication") as boss,
        agent(service, "helper") as helper,
    ):
        poems = {"name": "translate German poems", "description": "German poetry into English verse"}
        await helper("network_register_capabilities", capabilities=[poems])
        found = await seeker("search_for_agents", query="translate a German poem into English")
        assert [one["agent_id"] for one in found["results"]] == ["helper"]
        late = await boss("send_collaboration_request", target_agent_id="helper", task="a poem", timeout=1)
        assert (late["success"], late["error"]) == (False, "timeout")
        (item,) = (await helper("network_inbox"))["items"]
        await helper("network_reply", threadId=item["thread_id"], body="a verse")
        result = await boss("check_collaboration_result", request_id=late["request_id"])
        assert (result["status"], result["response"]) == ("completed_late", "a verse")


async def test_an_inbox_call_confirms_what_the_earlier_ones_were_handed(service: Wired) -> None:
    """Receipt over MCP is proven by the next `network_inbox`, and by nothing else."""
    async with agent(service, "boss") as boss, agent(service, "helper") as helper:
        await helper("network_whoami")
        sent = await boss("network_ask", body="1", toAgent="helper")

        async def state() -> str:
            copies = await read(service, lambda reader: reader.deliveries_of_message(sent["message_id"]))
            return copies[0].state.value

        assert await state() == "waiting"
        await helper("network_inbox")
        await helper("network_whoami")
        assert await state() == "held"
        assert (await helper("network_inbox"))["items"] == []
        assert await state() == "delivered"


async def test_what_a_session_took_goes_back_when_it_ends(service: Wired) -> None:
    """The client of the handshake era says that it leaves; its claims are free and its task is offered anew."""
    async with agent(service, "boss") as boss:
        await boss("network_whoami")
        async with agent(service, "helper", mode="legacy") as helper:
            await helper("network_whoami")
            task_id = (await boss("network_delegate", objective="build", toAgent="helper"))["task"]["task_id"]
            await helper("network_task_update", taskId=task_id, status="accepted")
            await helper("network_claim", scope="src")
            await boss("network_ask", body="still there?", toAgent="helper")
            assert [one["kind"] for one in (await helper("network_inbox"))["items"]] == ["ask"]
        assert "helper" not in await live(service)
        task = (await boss("network_task_get", taskId=task_id))["task"]
        assert (task["state"], task["reason"]) == (
            "pending",
            "the instance that worked on it ended: its session ended",
        )
        await boss("network_claim", scope="src/x.py")
        async with agent(service, "helper", mode="legacy") as again:
            items = (await again("network_inbox"))["items"]
            assert [(one["kind"], one["redelivered"]) for one in items] == [
                ("ask", True),
                ("task_offer", False),
            ]


async def test_each_session_of_the_handshake_era_is_an_instance_of_its_own(service: Wired) -> None:
    """Two programs with one token don't share claims; a newer client's token is its session."""
    token = await token_for(service, "scout")
    url = service.running.mcp_url
    async with (
        connected(url, token, mode="legacy") as first,
        connected(url, token, mode="legacy") as second,
        connected(url, token) as third,
        connected(url, token, "/mcp/communication") as fourth,
    ):
        ids = [await one.instance_id() for one in (first, second, third)]
        await fourth("network_inbox")
        assert len(set(ids)) == 3
        assert sorted((await live(service))["scout"]) == sorted(ids)


async def test_who_only_searches_is_offered_nothing(service: Wired) -> None:
    """An inbox can't be read at the discovery endpoint, so nobody there is available."""
    async with agent(service, "boss") as boss, agent(service, "seeker", "/mcp/discovery") as seeker:
        await seeker.tools()
        found = {one["name"]: one for one in (await boss("network_discover"))["agents"]}
        assert [one["available"] for one in found["seeker"]["instances"]] == [False]


async def test_a_void_token_ends_its_sessions(service: Wired) -> None:
    async with agent(service, "scout", mode="legacy") as scout:
        await scout("network_whoami")
        (about,) = (await service.operator.get("/api/v1/tokens")).json()
        await service.operator.delete(f"/api/v1/tokens/{about['id']}")
        assert await live(service) == {}


async def test_a_removed_agent_is_not_brought_back_by_its_token(service: Wired) -> None:
    """It comes to be when the token is given out, and joins as nobody once it is gone."""
    agents = "/api/v1/networks/local/agents"

    async def names() -> list[str]:
        return [one["name"] for one in (await service.operator.get(agents)).json()]

    token = await token_for(service, "Scout")
    assert await names() == ["coder", "scout"]
    assert (await service.operator.delete(f"{agents}/scout")).status_code == 204
    with pytest.raises(ExceptionGroup) as refused:
        async with connected(service.running.mcp_url, token) as scout:
            await scout("network_whoami")
    assert "portside agents add scout --network local" in "".join(format_exception(refused.value))
    assert await names() == ["coder"]


async def test_sessions_of_a_run_that_was_killed_are_over(home: Path) -> None:
    async with wired(home) as first:
        job = await first.worker(agent="coder")
        # Nobody in this run knows of it, as nobody would in the run after it was killed.
        left = NetworkService(first.stores.network, SystemClock(), RandomIds())
        await left.ensure_agent("local", "scout")
        await left.join("local", "scout", "left-over", None)
        stays = (await first.job(job.job_id)).instance_id
        await left.agents.add("local", AgentDefinition(AgentName("anna"), NOW, kind=AgentKind.HUMAN))
    async with wired(home, engine=first.engine) as second:
        found = await live(second)
        assert (found.keys(), found["coder"]) == ({"coder", "anna"}, [stays])
        ended = await read(second, lambda reader: reader.instance(InstanceId("left-over")))
        assert ended.ended_reason == "the orchestrator was restarted"


# --- by the clock ----------------------------------------------------------------------------------------


@dataclass
class Timed:
    """Sessions over a clock that the test moves."""

    world: World
    store: MemoryNetworkStore
    sessions: AgentSessions
    token: MemberToken

    async def live(self) -> list[str]:
        found = await self.store.read(HERE, lambda reader: reader.live_instances())
        return [one.id for one in found if one.available(self.world.clock.now())]


@pytest.fixture
async def timed() -> Timed:
    store = MemoryNetworkStore()
    world = World(store)
    await world.agent("scout")
    now = world.clock.now()
    token = MemberToken("t1", Holder.AGENT, "scout", "local", now, now + timedelta(hours=1))
    return Timed(world, store, AgentSessions(world.service, world.clock, CountedIds(), idle_s=600.0), token)


async def test_a_session_of_which_nothing_is_heard_ends(timed: Timed) -> None:
    first = await timed.sessions.enter("s1", timed.token, reads_inbox=True)
    assert await timed.sessions.enter("s1", timed.token, reads_inbox=True) == first
    timed.world.clock.advance(600)
    await timed.sessions.look()
    assert await timed.sessions.enter("s1", timed.token, reads_inbox=True) == first
    assert await timed.live() == [first]
    timed.world.clock.advance(601)
    await timed.sessions.look()
    assert await timed.live() == []
    assert await timed.sessions.enter("s1", timed.token, reads_inbox=True) != first


async def test_a_session_with_an_open_request_is_there(timed: Timed) -> None:
    first = await timed.sessions.enter("s1", timed.token, reads_inbox=True)
    with timed.sessions.request("s1"):
        for _ in range(5):
            timed.world.clock.advance(299)
            await timed.sessions.look()
        assert await timed.live() == [first]
    timed.world.clock.advance(601)
    await timed.sessions.look()
    assert await timed.live() == []


async def test_nobody_joins_in_the_place_of_a_human(timed: Timed) -> None:
    """BR-135: a human's name is the human's, whatever token was given out for it."""
    await timed.world.service.agents.remove("local", "scout")
    await timed.world.agent("scout", kind=AgentKind.HUMAN)
    with pytest.raises(Refused, match="is a human") as refused:
        await timed.sessions.enter("s1", timed.token, reads_inbox=True)
    assert refused.value.code == "not_served_by_jobs"


async def test_a_session_ends_with_its_token(timed: Timed) -> None:
    await timed.sessions.enter("s1", timed.token, reads_inbox=True)
    with timed.sessions.request("s1"):
        timed.world.clock.advance(3601)
        await timed.sessions.look()
        assert await timed.live() == []


async def test_a_token_expires(sqlite_stores: Stores) -> None:
    """DC-4: a token is good until its end, give or take half a minute, and says so then."""
    clock = SetClock()
    signer = TokenSigner(sqlite_stores.signing_keys, clock, CountedIds())
    await signer.load()
    tokens = MemberTokens(signer, sqlite_stores.member_tokens, clock, CountedIds())
    given = await tokens.give(Holder.AGENT, "Scout", "local", days=1)
    clock.advance(86_400)
    assert await tokens.check(given.token, Holder.AGENT) == given.about
    assert given.about.name == "scout"
    clock.advance(31)
    with pytest.raises(Unauthorised, match="ask the operator for another") as refused:
        await tokens.check(given.token, Holder.AGENT)
    assert refused.value.code == "token_expired"
    with pytest.raises(Unauthorised) as refused:
        await tokens.check(given.token, Holder.REPRESENTATIVE)
    assert refused.value.code == "token_invalid"

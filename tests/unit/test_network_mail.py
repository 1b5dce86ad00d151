"""Messages through the tools: to whom they go, how often, and when they count as delivered (WN-3)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.network_store import MemoryNetworkStore
from tests.support.networks import Caller, Refusal, World


@pytest.fixture
def world() -> World:
    return World(MemoryNetworkStore())


async def bodies(caller: Caller, call_id: str = "") -> list[str]:
    return [item["body"] for item in (await caller("inbox", call_id=call_id))["items"]]


async def refused(call: Any) -> str:
    with pytest.raises(Refusal) as no:
        await call
    return no.value.code


async def test_an_ask_and_its_reply_travel_in_one_thread(world: World):
    a, b = await world.instance("a1"), await world.instance("b1", "reviewer")
    sent = await a(
        "ask", body="Is it right?", toAgent="REVIEWER", subject="PR 1", resource="git@h.org:o/r.git"
    )
    (ask,) = (await b("inbox"))["items"]
    assert (ask["kind"], ask["body"], ask["subject"]) == ("ask", "Is it right?", "PR 1")
    assert ask["from"] == {"agent": "coder", "instance_id": "a1"}
    assert ask["resource"] == "h.org/o/r"
    assert ask["thread_id"] == sent["thread_id"]
    assert "Only network_reply and network_ask calls reach the sender" in ask["note"]
    await b("reply", threadId=ask["thread_id"], body="Yes.")
    (reply,) = (await a("inbox"))["items"]
    assert (reply["kind"], reply["body"], reply["thread_id"]) == ("reply", "Yes.", sent["thread_id"])
    assert "No answer is needed" in reply["note"]
    await a("ask", body="Sure?", threadId=sent["thread_id"])
    assert await bodies(b) == ["Sure?"]


async def test_a_message_without_recipient_and_thread_is_refused(world: World):
    a = await world.instance("a1")
    assert await refused(a("ask", body="?")) == "no_recipient"
    assert await refused(a("ask", body="?", toInstance="a1")) == "self_request"
    assert await refused(a("ask", body="?", toAgent="nobody")) == "not_found"
    assert await refused(a("reply", threadId="none", body="?")) == "not_found"


async def test_a_thread_is_for_its_participants(world: World):
    a = await world.instance("a1")
    await world.agent("reviewer")
    thread = (await a("ask", body="?", toAgent="reviewer"))["thread_id"]
    stranger = await world.instance("s1", "stranger")
    assert await refused(stranger("reply", threadId=thread, body="!")) == "not_a_participant"
    assert await refused(stranger("ask", threadId=thread, body="!")) == "not_a_participant"
    await a("ask", threadId=thread, body="Join us.", toAgent="stranger")
    assert await bodies(stranger) == ["Join us."]
    await stranger("reply", threadId=thread, body="Hello, both.")
    assert await bodies(a) == ["Hello, both."]


async def test_a_message_to_a_name_lands_with_one_instance_and_a_pinned_one_with_that_instance(world: World):
    a, b1, b2 = await world.instance("a1"), await world.instance("b1", "b"), await world.instance("b2", "b")
    await a("ask", body="to the name", toAgent="b")
    await a("ask", body="to b2", toAgent="a", toInstance="b2")
    assert await bodies(b1) == ["to the name"]
    assert await bodies(b2) == ["to b2"]


async def test_a_message_waits_for_an_agent_that_nobody_serves_yet(world: World):
    a = await world.instance("a1")
    await world.agent("b")
    await a("ask", body="later", toAgent="b")
    assert await bodies(await world.instance("b1", "b")) == ["later"]


async def test_an_ask_to_a_group_gives_each_other_member_one_copy(world: World):
    for name in ("b", "c"):
        await world.agent(name, groups=("team",))
    await world.agent("coder", groups=("team",))
    a = await world.instance("a1")
    b, c = await world.instance("b1", "b"), await world.instance("c1", "c")
    sent = await a("ask", body="all", toAgent="Team")
    assert [one["agent"] for one in sent["recipients"]] == ["b", "c"]
    assert await bodies(b) == await bodies(c) == ["all"]
    assert await bodies(a) == []
    await world.agent("lone", groups=("solo",))
    assert (
        await refused((await world.instance("l1", "lone"))("ask", body="?", toAgent="solo")) == "no_recipient"
    )


async def test_a_repeated_send_makes_one_message(world: World):
    """BR-124: a send that is retried with its call id is one message."""
    a, b = await world.instance("a1"), await world.instance("b1", "b")
    first = await a("ask", call_id="x", body="once", toAgent="b")
    assert await a("ask", call_id="x", body="once", toAgent="b") == first
    assert await bodies(b) == ["once"]
    await b("reply", call_id="y", threadId=first["thread_id"], body="one")
    await b("reply", call_id="y", threadId=first["thread_id"], body="one")
    assert await bodies(a) == ["one"]


async def test_the_sender_reads_delivered_only_after_the_receipt_is_proven(world: World):
    """BR-123: handed out is not delivered."""
    a, b = await world.instance("a1"), await world.instance("b1", "b")

    async def state() -> str:
        sent = await a("ask", call_id="x", body="?", toAgent="b")
        return sent["recipients"][0]["state"]

    assert await state() == "waiting"
    await b("inbox", call_id="read")
    assert await state() == "held"
    await world.service.inbox.acknowledge("b1", ["another call"])
    assert await state() == "waiting"  # the model was shown another call's result, and not this one's
    await b("inbox", call_id="read")
    await world.service.inbox.acknowledge("b1", ["read"])
    assert await state() == "delivered"


async def test_an_instance_killed_before_its_next_model_call_gets_its_messages_again_in_order(world: World):
    """BR-123: nothing is lost between the fetch and the model; a repeat has the same id and says so."""
    a, b = await world.instance("a1"), await world.instance("b1", "b")
    for number in range(3):
        await a("ask", body=f"m{number}", toAgent="b")
    first = (await b("inbox", call_id="lost"))["items"]
    await world.service.join("local", "b", "b1", "job-of-b1")
    again = (await b("inbox", call_id="found"))["items"]
    assert [item["body"] for item in again] == ["m0", "m1", "m2"]
    assert [item["delivery_id"] for item in again] == [item["delivery_id"] for item in first]
    assert [item["redelivered"] for item in first + again] == [False] * 3 + [True] * 3


async def test_a_lost_response_to_a_fetch_is_fetched_again_by_its_call_id(world: World):
    """BR-123: the retried fetch is handed the same."""
    a, b = await world.instance("a1"), await world.instance("b1", "b")
    await a("ask", body="m", toAgent="b")
    first = await b("inbox", call_id="x")
    await a("ask", body="n", toAgent="b")
    again = await b("inbox", call_id="x")
    assert again["items"][0] == first["items"][0]
    assert [item["body"] for item in again["items"]] == ["m", "n"]
    assert await bodies(b, "y") == []


async def test_undelivered_mail_of_an_ended_instance_is_its_agents(world: World):
    a, b1 = await world.instance("a1"), await world.instance("b1", "b")
    await a("ask", body="read before", toAgent="b")
    await b1("inbox", call_id="1")
    await world.service.inbox.acknowledge("b1", ["1"])
    await a("ask", body="held", toAgent="b")
    await b1("inbox", call_id="2")
    await a("ask", body="pinned", toInstance="b1")
    await world.service.leave("b1", "killed")
    assert await bodies(await world.instance("b2", "b")) == ["held", "pinned"]
    assert await refused(a("ask", body="?", toInstance="b1")) == "target_ended"


async def test_a_reply_finds_the_agent_of_an_asker_that_ended(world: World):
    a1, b = await world.instance("a1"), await world.instance("b1", "b")
    thread = (await a1("ask", body="?", toAgent="b"))["thread_id"]
    await world.service.leave("a1", "done")
    await b("reply", threadId=thread, body="late")
    a2 = await world.instance("a2")
    assert await bodies(a2) == ["late"]
    await a2("reply", threadId=thread, body="thanks")
    assert await bodies(b) == ["?", "thanks"]


async def test_two_instances_of_one_agent_talk_without_hearing_themselves(world: World):
    a1, a2 = await world.instance("a1"), await world.instance("a2")
    thread = (await a1("ask", body="anyone?", toAgent="coder"))["thread_id"]
    assert await bodies(a1) == []
    assert await bodies(a2) == ["anyone?"]
    await a2("reply", threadId=thread, body="me")
    assert await bodies(a2) == []
    assert await bodies(a1) == ["me"]


async def test_an_inbox_is_bounded_and_says_that_there_is_more(world: World):
    """BR-124: a long queue arrives in pieces, oldest first, each message once."""
    a, b = await world.instance("a1"), await world.instance("b1", "b")
    for number in range(120):
        await a("ask", body=str(number), toAgent="b")
    seen: list[str] = []
    mores: list[bool] = []
    for _ in range(3):
        inbox = await b("inbox")
        seen += [item["body"] for item in inbox["items"]]
        mores.append(inbox["more"])
    assert seen == [str(number) for number in range(120)]
    assert mores == [True, True, False]


async def test_an_inbox_stays_below_what_a_model_is_shown_of_a_result(world: World):
    a, b = await world.instance("a1"), await world.instance("b1", "b")
    for letter in "xyz":
        await a("ask", body=letter * 30_000, toAgent="b")
    inbox = await b("inbox")
    assert [item["body"][0] for item in inbox["items"]] == ["x"]
    assert inbox["more"] is True
    assert (await bodies(b))[0][0] == "y"


async def test_two_fetches_in_one_turn_lose_nothing(world: World):
    """BR-123, BR-124: the second proves nothing about the first, whose result no model has seen."""
    a, b = await world.instance("a1"), await world.instance("b1", "b")
    sent = [await a("ask", call_id=f"s{n}", body=f"m{n}", toAgent="b") for n in range(2)]
    assert await bodies(b, "1:first") == ["m0", "m1"]
    await a("ask", call_id="s2", body="m2", toAgent="b")
    assert await bodies(b, "1:second") == ["m2"]

    async def states() -> set[str]:
        again = [await a("ask", call_id=f"s{n}", body=f"m{n}", toAgent="b") for n in range(3)]
        return {one["recipients"][0]["state"] for one in again}

    assert await states() == {"held"}
    await world.service.join("local", "b", "b1", "job-of-b1")  # killed before the model saw either
    assert await bodies(b, "2:third") == ["m0", "m1", "m2"]
    await world.service.inbox.acknowledge("b1", ["2:third"])
    assert await states() == {"delivered"}
    assert len({one["message_id"] for one in sent}) == 2


async def test_a_fetch_whose_result_never_reached_the_model_is_handed_out_again(world: World):
    """BR-123: its call was answered with an error, so the next request proves the others only."""
    a, b = await world.instance("a1"), await world.instance("b1", "b")
    await a("ask", body="lost", toAgent="b")
    assert await bodies(b, "1:broken") == ["lost"]
    await a("ask", body="seen", toAgent="b")
    assert await bodies(b, "1:fine") == ["seen"]
    await world.service.inbox.acknowledge("b1", ["1:fine"])
    assert await bodies(b, "1:later") == ["lost"]


async def test_in_an_mcp_session_the_next_fetch_is_the_proof(world: World):
    """BR-123: its model's requests carry no call id; what a loop was handed is left alone."""
    a, b = await world.instance("a1"), await world.instance("b1", "b")
    first = await a("ask", call_id="x", body="m", toAgent="b")
    assert await bodies(b, "1:mcp-1") == ["m"]
    await world.service.inbox.acknowledge("b1", [])
    assert await bodies(b, "1:mcp-1") == ["m"]
    assert await bodies(b, "1:mcp-2") == []
    again = await a("ask", call_id="x", body="m", toAgent="b")
    assert again["recipients"][0]["state"] == "delivered"
    assert first["recipients"][0]["state"] == "waiting"

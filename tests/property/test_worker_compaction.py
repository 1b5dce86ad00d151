"""However a conversation is shortened, it can be sent."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from worker.compaction import (
    clip_arguments,
    clip_results,
    digest,
    split,
    stub_results,
    tokens_of,
    transcript,
    with_summary,
)
from worker.history import check_pairing
from worker.protocol.llm import Message, WireToolCall

sizes = st.sampled_from([0, 1, 150, 900, 5_000])
turns = st.tuples(st.integers(0, 4), sizes, sizes, st.booleans())


def conversation(shape: list[tuple[int, int, int, bool]]) -> list[Message]:
    """An opening of two, then turns with any number of calls and what people say in between."""
    messages = [Message(role="system", content="rules"), Message(role="user", content="the task")]
    for turn, (count, written, read, spoken) in enumerate(shape):
        ids = [f"c{turn}_{n}" for n in range(count)]
        arguments = json.dumps({"a": "ü" * written})
        made = [WireToolCall(id=one, name="t", arguments=arguments) for one in ids]
        messages.append(Message(role="assistant", content="a" * written, tool_calls=made))
        messages.extend(Message(role="tool", tool_call_id=one, content="€" * read) for one in ids)
        if spoken:
            messages.append(Message(role="user", content="u" * read))
    return messages


conversations = st.lists(turns, max_size=25).map(conversation)
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@unhurried
@given(conversations, st.integers(1, 12), st.integers(0, 50_000))
def test_every_way_of_shortening_keeps_opening_pairing_and_recent_turns(
    messages: list[Message], kept: int, excess: int
) -> None:
    """BR-144: batches whole, the first instruction and the recent turns kept, never larger."""
    parts = split(messages, 2, kept)
    assert [*parts.opening, *parts.older, *parts.recent] == messages
    assert sum(one.role == "assistant" for one in parts.recent) <= kept
    stubbed = stub_results(parts, {}, excess).messages
    summed = with_summary(parts, digest(parts.older)).messages
    clipped = clip_arguments(clip_results(messages, 1_024).messages, 1_024).messages
    for shortened in (stubbed, summed, clipped):
        check_pairing(shortened)
        assert shortened[:2] == messages[:2]
    assert stubbed[len(stubbed) - len(parts.recent) :] == parts.recent
    assert summed[len(summed) - len(parts.recent) :] == parts.recent
    assert tokens_of(stubbed) <= tokens_of(messages)
    assert tokens_of(clipped) <= tokens_of(messages)
    for message in clipped:
        assert all(isinstance(json.loads(call.arguments), dict) for call in message.tool_calls)


@unhurried
@given(conversations, st.integers(1_000, 20_000))
def test_a_transcript_fits_its_room(messages: list[Message], room: int) -> None:
    """BR-144: the request for a summary does not overflow itself."""
    assert len(transcript(messages, room)) <= room

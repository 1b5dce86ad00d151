"""The conversation can always be sent back."""

from __future__ import annotations

import json

import pytest

from worker.history import (
    BrokenHistory,
    History,
    ToolResult,
    check_pairing,
    result_message,
    storable_call,
    stored_arguments,
    with_unique_ids,
)
from worker.protocol.llm import Message, WireToolCall


def call(identity: str, arguments: str = "{}") -> WireToolCall:
    return WireToolCall(id=identity, name="t", arguments=arguments)


def test_empty_and_repeated_ids_become_unique_and_good_ones_stay() -> None:
    """BR-141: also across turns."""
    made = with_unique_ids([call("a"), call("b"), call("b"), call(""), call("old")], {"old"}, prefix="call_3")
    ids = [one.id for one in made]
    assert ids[:2] == ["a", "b"]
    assert len(set(ids)) == 5
    assert "old" not in ids


def test_a_made_up_id_gives_way_to_one_that_was_written() -> None:
    made = with_unique_ids([call(""), call("call_1_0")], set(), prefix="call_1")
    assert len({one.id for one in made}) == 2


@pytest.mark.parametrize(
    "text",
    [
        "{command: ls}",
        "[1]",
        '"a"',
        "",
        "null",
        '{"a": NaN}',
        '{"a":1,"a":2}',
        '{"a": "\\ud800"}',
        "{" * 5000,
    ],
)
def test_arguments_that_are_no_json_object_are_stored_as_an_empty_one(text: str) -> None:
    """BR-140: wrapped or `{}`; the raw text is in the error."""
    assert stored_arguments(text) == "{}"


def test_good_arguments_are_stored_as_written() -> None:
    text = '{ "b": 1,  "a": "ü" }'
    assert storable_call(call("a", text)).arguments == text


def test_a_turn_without_every_result_is_refused() -> None:
    history = History([Message(role="user", content="x")])
    with pytest.raises(BrokenHistory, match="b"):
        history.add_turn("", [call("a"), call("b")], {"a": ToolResult("x")})
    assert len(history.messages) == 1


def test_results_follow_in_call_order() -> None:
    """BR-141: not in finishing order."""
    history = History([])
    history.add_turn("", [call("a"), call("b")], {"b": ToolResult("2"), "a": ToolResult("1", is_error=True)})
    assert [one.tool_call_id for one in history.messages[1:]] == ["a", "b"]
    check_pairing(history.messages)


@pytest.mark.parametrize(
    "messages",
    [
        [Message(role="tool", tool_call_id="a")],
        [Message(role="assistant", tool_calls=[call("a")])],
        [Message(role="assistant", tool_calls=[call("a")]), Message(role="user", content="x")],
        [
            Message(role="assistant", tool_calls=[call("a"), call("a")]),
            *[Message(role="tool", tool_call_id="a")] * 2,
        ],
        [Message(role="assistant", tool_calls=[call("a")]), *[Message(role="tool", tool_call_id="a")] * 2],
    ],
)
def test_a_broken_pairing_is_found_before_it_is_sent(messages: list[Message]) -> None:
    """BR-144: over the whole list, before each request."""
    with pytest.raises(BrokenHistory):
        check_pairing(messages)


def test_half_surrogates_of_odd_file_names_can_be_sent() -> None:
    message = result_message("a", ToolResult("caf\udce9.txt"))
    assert json.loads(message.model_dump_json())["content"] == "caf\\udce9.txt"

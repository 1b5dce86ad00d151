"""PD-31: which native requests may go to a job's model, and what they are counted as; no IO."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestrator.domain.native.fields import FIELDS
from orchestrator.domain.native.judge import Accepted, Refused, judge
from orchestrator.domain.native.names import Dialect
from orchestrator.domain.native.usage import Tokens, tokens_in
from orchestrator.services.native_stream import EventMeter, failed_event
from tests.fakes.providers import Say, anthropic_events, openai_events, responses_events

HELLO: list[dict[str, Any]] = [{"role": "user", "content": "hi"}]


def judged(job_model: str, dialect: Dialect, path: str, **body: Any) -> Accepted | Refused:
    return judge(job_model, dialect, path, body)


def test_a_job_without_a_model_is_told_so() -> None:
    refused = judged("", Dialect.OPENAI, "chat/completions", model="m")
    assert refused == Refused("this job has no model; start it with --model")


def test_a_script_s_path_is_no_name_and_both_dialects_reach_it() -> None:
    for dialect, path in ((Dialect.OPENAI, "responses"), (Dialect.ANTHROPIC, "messages")):
        accepted = judged("scripted:/srv/home/s.yaml", dialect, path, model="portside", stream=True)
        assert isinstance(accepted, Accepted)
        assert (accepted.model, accepted.renamed, accepted.stream) == ("portside", False, True)
    refused = judged("scripted:/srv/home/s.yaml", Dialect.OPENAI, "responses", model="gpt")
    assert isinstance(refused, Refused)
    assert "/srv" not in refused.message


def test_names_with_colons_are_whole() -> None:
    accepted = judged("openai:qwen3:8b", Dialect.OPENAI, "chat/completions", model="qwen3:8b", messages=HELLO)
    assert isinstance(accepted, Accepted)
    assert accepted.model == "qwen3:8b"


def test_no_field_lets_a_provider_act_outside_of_the_model() -> None:
    acting = {
        "web_search_options", "background", "background_options", "conversation", "prompt", "container",
        "mcp_servers", "betas", "fallbacks", "thread", "workspace_id", "user_profile_id", "access_programs",
    }  # fmt: skip
    assert not [name for allowed in FIELDS.values() for name in allowed & acting]


@pytest.mark.parametrize("odd", [None, 5, "text", {}, [5, None, "x"], [{"content": 5}], [{"content": [5]}]])
@pytest.mark.parametrize("name", ["messages", "tools", "input", "system"])
def test_odd_shapes_are_left_to_the_provider(name: str, odd: Any) -> None:
    for dialect, path in (
        (Dialect.OPENAI, "chat/completions"),
        (Dialect.OPENAI, "responses"),
        (Dialect.ANTHROPIC, "messages"),
    ):
        assert isinstance(
            judge("scripted:x", dialect, path, {"model": "portside", name: odd}), Accepted | Refused
        )


@pytest.mark.parametrize("odd", [[], {}, ["text"], {"type": "text"}, 5, None])
def test_what_is_no_name_is_refused_wherever_a_name_belongs(odd: Any) -> None:
    """PD-31: a list or an object in a name's place is the sender's mistake, not a bug of ours."""
    part = [{"content": [{"type": odd}]}]
    source = [{"content": [{"type": "image", "source": {"type": odd}}]}]
    for dialect, path, body in (
        (Dialect.OPENAI, "chat/completions", {"model": odd}),
        (Dialect.OPENAI, "chat/completions", {"model": "portside", "tools": [{"type": odd}]}),
        (Dialect.OPENAI, "chat/completions", {"model": "portside", "messages": part}),
        (Dialect.OPENAI, "responses", {"model": "portside", "input": [{"type": odd}]}),
        (Dialect.ANTHROPIC, "messages", {"model": odd}),
        (Dialect.ANTHROPIC, "messages", {"model": "portside", "tools": [{"type": odd}]}),
        (Dialect.ANTHROPIC, "messages", {"model": "portside", "messages": part}),
        (Dialect.ANTHROPIC, "messages", {"model": "portside", "messages": source}),
    ):
        assert isinstance(judge("scripted:x", dialect, path, body), Refused)


def test_tokens_of_every_dialect_are_found() -> None:
    assert tokens_in({"usage": {"prompt_tokens": 7, "completion_tokens": 2}}) == Tokens(7, 2)
    assert tokens_in({"response": {"usage": {"input_tokens": 7, "output_tokens": 2}}}) == Tokens(7, 2)
    cached = {"input_tokens": 1, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 2}
    assert tokens_in({"message": {"usage": {**cached, "output_tokens": 2}}}) == Tokens(7, 2)
    assert tokens_in({"usage": {"input_tokens": -1, "output_tokens": True}}) == Tokens()
    assert tokens_in({"usage": None}) == Tokens()


@pytest.mark.parametrize("size", [1, 7, 4096])
@pytest.mark.parametrize("events", [openai_events, anthropic_events, responses_events])
def test_a_stream_in_pieces_of_any_size_is_the_same_stream(events: Any, size: int) -> None:
    """BR-031: a piece may end inside of a character or of a line."""
    raw = "".join(events(Say("hällo wörld, more than one piece"))).encode()
    meter = EventMeter(lambda text: text, hide_usage=False)
    passed = b"".join(meter.feed(raw[at : at + size]) for at in range(0, len(raw), size)) + meter.rest()
    assert passed == raw
    assert meter.tokens.total == 120


def test_only_the_event_that_nobody_asked_for_is_hidden() -> None:
    raw = "".join(openai_events(Say("hi"))).encode()
    meter = EventMeter(lambda text: text, hide_usage=True)
    passed = meter.feed(raw) + meter.rest()
    assert b"prompt_tokens" not in passed
    assert passed.endswith(b"data: [DONE]\n\n")
    assert meter.tokens.total == 120


def test_a_stream_without_an_end_is_passed_on_in_the_end() -> None:
    meter = EventMeter(lambda text: text, hide_usage=True)
    assert meter.feed(b'data: {"usage": {"prompt_tokens": 3}}') == b""
    assert meter.rest() == b'data: {"usage": {"prompt_tokens": 3}}'
    assert meter.tokens == Tokens(3, 0)


def test_an_error_of_ours_is_one_event() -> None:
    head, data, *rest = failed_event("the provider fell silent").decode().split("\n")
    assert (head, rest) == ("event: error", ["", ""])
    assert json.loads(data.removeprefix("data: "))["error"]["message"] == "the provider fell silent"

"""What reaches a provider, and what comes back, in both dialects."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.adapters.models.hosted import HostedModels
from orchestrator.adapters.models.retries import ProviderRetries
from orchestrator.domain.shaping.tool import shape_tool
from orchestrator.ports.models import (
    ModelError,
    ModelMessage,
    ModelRequest,
    ModelTool,
    ModelToolCall,
    ModelUsage,
)
from tests.fakes.clock import SteppingClock
from tests.fakes.providers import Call, Fail, FakeProvider, Say, fake_provider
from tests.support.models import KEY, Dialect, HostedUnderTest

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
USER = ModelMessage("user", "hi")
PLAIN = (
    '{"$schema":"https://json-schema.org/draft/2020-12/schema","title":"Search","type":"object","properties":'
    '{"z":{"type":"string","title":"Z","default":"é"},"a":{"$ref":"#/$defs/A"},"type":{"const":1.0}},'
    '"required":["z"],"additionalProperties":false,"$defs":{"A":{"type":["integer","null"],"exclusiveMinimum":0}}}'
)


@pytest.fixture
async def fake() -> AsyncIterator[FakeProvider]:
    async with fake_provider() as provider:
        yield provider


@pytest.fixture(params=["openai", "anthropic"])
async def hosted(request: pytest.FixtureRequest, fake: FakeProvider) -> AsyncIterator[HostedUnderTest]:
    dialect: Dialect = request.param
    under_test = HostedUnderTest(dialect, fake)
    yield under_test
    await under_test.model.close()


def shown_tools(fake: FakeProvider) -> list[tuple[str, str, str]]:
    """Name, description and schema text of each tool in the newest HTTP body."""
    tools: list[dict[str, Any]] = [tool.get("function", tool) for tool in fake.seen[-1].body.get("tools", [])]
    return [
        (
            tool["name"],
            tool["description"],
            json.dumps(
                tool.get("parameters", tool.get("input_schema")), ensure_ascii=False, separators=(",", ":")
            ),
        )
        for tool in tools
    ]


def history(*calls: ModelToolCall, results: tuple[ModelMessage, ...]) -> tuple[ModelMessage, ...]:
    return (
        ModelMessage("system", "Be brief."),
        USER,
        ModelMessage("assistant", "", tool_calls=calls),
        *results,
    )


async def test_a_definition_reaches_the_provider_byte_for_byte(hosted: HostedUnderTest) -> None:
    """Decision 3: the provider's HTTP body holds the owner's definition where shaping changed nothing."""
    tool = ModelTool("search", "Finds “things”.", PLAIN)
    assert shape_tool(tool.name, tool.description, tool.parameters_json, "generic").changes == ()
    await hosted.ask(tools=[tool])
    assert shown_tools(hosted.fake) == [("search", "Finds “things”.", PLAIN)]


@pytest.mark.parametrize(
    "odd",
    [
        '{"type":"object"}',
        "{}",
        '{"properties":{"q":{"type":"string"}}}',
        '{"type":"object","anyOf":[{"required":["a"]},{"required":["b"]}],"properties":{"a":{},"b":{}}}',
        '{"type":"object","properties":{"filter[name]":{},"page.size":{},"$top":{},"名前":{}}}',
        '{"type":"string"}',
        '{"type":"object","properties":{"x":{"$ref":"#/nowhere"}}}',
    ],
)
async def test_one_odd_schema_never_makes_a_request_fail(hosted: HostedUnderTest, odd: str) -> None:
    """BR-057, BR-061: the provider accepts the request, and the tool beside the odd one is unchanged."""
    tools = [ModelTool("odd", "", odd), ModelTool("a.b/c", "", PLAIN), ModelTool("good", "", PLAIN)]
    assert (await hosted.ask(tools=tools)).content == "ok"
    shown = shown_tools(hosted.fake)
    assert shown[-1] == ("good", "", PLAIN)
    assert "a.b/c" not in [name for name, _, _ in shown]


async def test_renamed_properties_come_back_under_the_owners_names(hosted: HostedUnderTest) -> None:
    """BR-061: rename both ways, in new calls and in the history."""
    tool = ModelTool("find", "", '{"type":"object","properties":{"filter[name]":{"type":"string"}}}')
    shown = shape_tool("find", "", tool.parameters_json, "generic").renames["filter[name]"]
    hosted.fake.plan = [
        Say(calls=(Call("c1", "find", json.dumps({shown: "x"})),), finish="tool_calls"),
        Say("ok"),
    ]
    answer = await hosted.ask(tools=[tool])
    assert answer.tool_calls == (ModelToolCall("c1", "find", '{"filter[name]":"x"}'),)
    results = (ModelMessage("tool", "found", tool_call_id="c1"),)
    await hosted.ask(history(*answer.tool_calls, results=results), [tool])
    assert json.dumps(shown) in hosted.fake.seen[-1].text.replace('\\"', '"')
    assert "filter[name]" not in json.dumps(hosted.fake.seen[-1].body["messages"])


@pytest.mark.parametrize(
    "arguments", ['{"a": 1,  "b":"x"}', "", "{command: ls}", '{"path":"big.py","content":"def']
)
async def test_a_new_calls_arguments_are_the_models_own_text(hosted: HostedUnderTest, arguments: str) -> None:
    """BR-138, BR-140: cut or malformed arguments are not repaired on the way."""
    hosted.fake.plan = [Say("I look.", calls=(Call("c1", "shell", arguments),), finish="length")]
    answer = await hosted.ask(tools=[ModelTool("shell", "", PLAIN)])
    assert answer.content == "I look."
    assert answer.finish_reason == "length"
    assert answer.tool_calls[0].arguments in {arguments, arguments or "{}"}


@pytest.mark.parametrize(
    "bad", ["{command: ls}", '{"a":', "[1]", '"x"', "null", "", "NaN", r'{"a":"\ud800"}', "[" * 50_000]
)
async def test_history_with_malformed_arguments_is_accepted_by_the_provider(
    hosted: HostedUnderTest, bad: str
) -> None:
    """BR-140: what is sent back is valid JSON, whatever came in."""
    calls = (ModelToolCall("c1", "shell", bad), ModelToolCall("c2", "shell", '{"command":"pwd"}'))
    results = (
        ModelMessage("tool", "arguments were no JSON", tool_call_id="c1", is_error=True),
        ModelMessage("tool", "/workspace", tool_call_id="c2"),
    )
    assert (await hosted.ask(history(*calls, results=results))).content == "ok"
    messages = json.dumps(hosted.fake.seen[-1].body["messages"])
    assert "INVALID_JSON" not in messages
    assert "pwd" in messages


async def test_results_follow_their_calls_with_errors_marked(hosted: HostedUnderTest) -> None:
    """BR-141, mapping side: a batch stays whole and in order, failed results are told as such."""
    calls = tuple(ModelToolCall(f"c{n}", "shell", "{}") for n in range(3))
    results = tuple(
        ModelMessage("tool", f"result {n}", tool_call_id=f"c{n}", is_error=n == 1) for n in range(3)
    )
    await hosted.ask((*history(*calls, results=results), ModelMessage("user", "and now?")))
    messages = hosted.fake.seen[-1].body["messages"]
    if hosted.dialect == "openai":
        sent = [
            (message["tool_call_id"], message["content"]) for message in messages if message["role"] == "tool"
        ]
        assert sent == [("c0", "result 0"), ("c1", '{"error":"result 1"}'), ("c2", "result 2")]
        assert messages[-1] == {"role": "user", "content": "and now?"}
    else:
        *blocks, last = messages[-1]["content"]
        assert [(block["tool_use_id"], block["is_error"]) for block in blocks] == [
            ("c0", False),
            ("c1", True),
            ("c2", False),
        ]
        assert last == {"type": "text", "text": "and now?"}


async def test_an_image_in_a_result_reaches_the_model(hosted: HostedUnderTest) -> None:
    """Decision 10: it stays in the result, or follows the batch in a user message."""
    parts = [{"type": "text", "text": "a plot"}, {"type": "image", "media_type": "image/png", "data": PNG}]
    calls = (ModelToolCall("c1", "plot", "{}"), ModelToolCall("c2", "plot", "{}"))
    results = (
        ModelMessage("tool", parts, tool_call_id="c1"),
        ModelMessage("tool", "none", tool_call_id="c2"),
    )
    assert (await hosted.ask(history(*calls, results=results))).content == "ok"
    messages = hosted.fake.seen[-1].body["messages"]
    if hosted.dialect == "openai":
        assert messages[-3]["content"] == "a plot\n[image/png of call c1] follows"
        assert [part["type"] for part in messages[-1]["content"]] == ["text", "image_url"]
        assert messages[-1]["content"][1]["image_url"]["url"] == f"data:image/png;base64,{PNG}"
    else:
        text, image = messages[-1]["content"][0]["content"]
        assert text["text"] == "a plot"
        assert image["source"] == {"type": "base64", "media_type": "image/png", "data": PNG}


@pytest.mark.parametrize(
    ("part", "note"),
    [
        ({"type": "file", "media_type": "audio/wav", "data": PNG}, "[audio/wav, 8 bytes, left out"),
        ({"type": "image", "media_type": "image/svg+xml", "data": PNG}, "[image/svg+xml, 8 bytes, left out"),
        (
            {"type": "image", "media_type": "image/png", "data": "%%%"},
            "[image/png left out: its data is not base64]",
        ),
    ],
)
async def test_media_that_models_refuse_are_told_not_sent(
    hosted: HostedUnderTest, part: dict[str, Any], note: str
) -> None:
    await hosted.ask((ModelMessage("user", [part]),))
    assert note in hosted.fake.seen[-1].text


async def test_a_foreign_call_id_is_made_legal_on_both_sides() -> None:
    async with fake_provider() as fake:
        job = HostedUnderTest("anthropic", fake)
        call = ModelToolCall("functions.shell:0", "shell", "{}")
        results = (ModelMessage("tool", "x", tool_call_id="functions.shell:0"),)
        assert (await job.ask(history(call, results=results))).content == "ok"
        await job.model.close()


@pytest.mark.parametrize(
    ("finish", "calls", "expected"),
    [
        ("stop", False, "stop"),
        ("tool_calls", True, "tool_calls"),
        ("stop", True, "tool_calls"),
        ("length", True, "length"),
        ("length", False, "length"),
        ("content_filter", False, "content_filter"),
    ],
)
async def test_finish_reasons_mean_the_same_everywhere(
    hosted: HostedUnderTest, finish: Any, expected: str, *, calls: bool
) -> None:
    """BR-138, mapping side: an answer cut by the limit says so even when it holds whole calls."""
    made = (Call("c1", "shell", "{}"),) if calls else ()
    hosted.fake.plan = [Say("text", calls=made, finish=finish)]
    assert (await hosted.ask(tools=[ModelTool("shell", "", PLAIN)])).finish_reason == expected


async def test_usage_counts_cached_tokens_too(hosted: HostedUnderTest) -> None:
    cached = {"openai": ModelUsage(100, 20, 60, 0), "anthropic": ModelUsage(100, 20, 50, 10)}
    assert (await hosted.ask()).usage == cached[hosted.dialect]


async def test_system_messages_stay_apart_from_the_conversation(hosted: HostedUnderTest) -> None:
    systems = (ModelMessage("system", "You are a coder."), ModelMessage("system", "Guidance of two servers."))
    await hosted.ask((*systems, USER))
    body = hosted.fake.seen[-1].body
    if hosted.dialect == "openai":
        assert [message["role"] for message in body["messages"]] == ["system", "system", "user"]
    else:
        assert body["system"] == "You are a coder.\n\nGuidance of two servers."
        assert [message["role"] for message in body["messages"]] == ["user"]


@pytest.mark.parametrize(
    ("choice", "openai", "anthropic"),
    [
        ("auto", "auto", {"type": "auto"}),
        ("none", "none", {"type": "none"}),
        ("required", "required", {"type": "any"}),
        (
            {"name": "shell"},
            {"type": "function", "function": {"name": "shell"}},
            {"type": "tool", "name": "shell"},
        ),
        (
            {"type": "function", "function": {"name": "shell"}},
            {"type": "function", "function": {"name": "shell"}},
            {"type": "tool", "name": "shell"},
        ),
    ],
)
async def test_a_tool_choice_is_said_in_each_dialect(
    hosted: HostedUnderTest, choice: Any, openai: Any, anthropic: Any
) -> None:
    request = hosted.request(tools=[ModelTool("shell", "", PLAIN), ModelTool("other", "", PLAIN)])
    await hosted.model.complete(replace(request, tool_choice=choice, max_tokens=77, stop_sequences=("END",)))
    body = hosted.fake.seen[-1].body
    assert body["tool_choice"] == (openai if hosted.dialect == "openai" else anthropic)
    assert body.get("max_tokens", body.get("max_completion_tokens")) == 77
    assert body.get("stop", body.get("stop_sequences")) == ["END"]


@pytest.mark.parametrize("choice", [{"name": "unknown"}, {"type": "function"}])
async def test_a_tool_choice_that_means_nothing_is_refused_before_it_is_sent(
    hosted: HostedUnderTest, choice: dict[str, Any]
) -> None:
    request = replace(hosted.request(tools=[ModelTool("shell", "", PLAIN)]), tool_choice=choice)
    with pytest.raises(ModelError) as caught:
        await hosted.model.complete(request)
    assert caught.value.cause == "refused"
    assert hosted.fake.seen == []


async def test_without_tools_the_model_may_call_none(hosted: HostedUnderTest) -> None:
    await hosted.ask()
    assert "tools" not in hosted.fake.seen[-1].body


async def test_key_and_address_come_from_the_constructor_only(
    fake: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.setenv(name, "sk-from-the-environment")
    for dialect in ("openai", "anthropic"):
        job = HostedUnderTest(dialect, fake)
        await job.ask()
        sent = json.dumps(fake.seen[-1].headers)
        assert KEY in sent
        assert "sk-from-the-environment" not in sent
        await job.model.close()


async def test_a_server_that_can_not_be_reached_is_named_after_its_retries() -> None:
    clock = SteppingClock()

    async def on_wait(_job_id: str, _seconds: float, _reason: str) -> None:
        return None

    retries = ProviderRetries(on_wait, clock, sleep=clock.sleep)
    model = HostedModels("openai", api_key="", base_url="http://127.0.0.1:1/v1", retries=retries)
    with pytest.raises(
        ModelError, match=r"the connection failed: .*(refused|attempts failed).*after 5 tries"
    ):
        await model.complete(ModelRequest("job-1", "openai:m", (USER,)))
    await model.close()


async def test_an_error_page_is_told_without_its_markup(hosted: HostedUnderTest) -> None:
    hosted.fake.plan = [Fail(418, "<html><script>x()</script><h1>I'm a   teapot</h1></html>")]
    with pytest.raises(ModelError, match=r"the model provider failed: 418: I'm a teapot$"):
        await hosted.ask()

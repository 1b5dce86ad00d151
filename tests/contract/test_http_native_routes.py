"""PD-31: native model requests over a job's own socket, through to a provider on loopback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from orchestrator.ports.models import ModelAnswer, ModelToolCall, ModelUsage
from tests.fakes.providers import Call, Fail, FakeProvider, Say, fake_provider
from tests.fakes.tools import SECRET
from tests.support.deadline import within
from tests.support.orchestrator import Wired, WorkerHands, problem, wired

CHAT = "llm/openai/v1/chat/completions"
RESPONSES = "llm/openai/v1/responses"
MESSAGES = "llm/anthropic/v1/messages"
ANTHROPIC_KEY = "sk-ant-marker-0123456789abcdefghij"
HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}]}
SAID: dict[str, Any] = {**HELLO, "max_tokens": 50}


@pytest.fixture
async def provider() -> AsyncIterator[FakeProvider]:
    async with fake_provider() as fake:
        yield fake


@pytest.fixture
async def served(home: Path, provider: FakeProvider) -> AsyncIterator[Wired]:
    """An orchestrator whose providers are the fake."""
    keys: dict[str, Any] = {"OPENAI_API_KEY": SECRET, "ANTHROPIC_API_KEY": ANTHROPIC_KEY}
    async with wired(home, model_base_url=provider.url, **keys) as running:
        yield running


def events_of(text: str) -> list[Any]:
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]


async def test_a_chat_goes_through_byte_for_byte_with_the_key_added_outside(
    served: Wired, provider: FakeProvider
) -> None:
    worker = await served.worker(model="openai:m")
    body = b'{"model":"m", "messages":[{"content":"h\\u00fc","role":"user"}],"seed":1.0}'
    answer = await worker.http.post(f"/worker/{worker.job_id}/{CHAT}", content=body)
    assert (answer.status_code, answer.json()["choices"][0]["message"]["content"]) == (200, "ok")
    (seen,) = provider.seen
    assert (seen.path, seen.text.encode()) == ("/chat/completions", body)
    assert seen.headers["authorization"] == f"Bearer {SECRET}"
    job = await served.job(worker.job_id)
    assert (job.model_requests, job.tokens_used) == (1, 120)
    (told,) = await served.events(worker.job_id, "model")
    assert (told["dialect"], told["endpoint"], told["status"]) == ("openai", "chat/completions", 200)
    assert (told["input_tokens"], told["output_tokens"], told["whole"]) == (100, 20, True)


async def test_nothing_that_the_box_says_of_itself_reaches_the_provider(
    served: Wired, provider: FakeProvider
) -> None:
    """PD-31: the job's token, keys, accounts, cookies and proxies' headers of a request stop at the edge."""
    worker = await served.worker(model="anthropic:m")
    smuggled = {
        "x-api-key": "mine",
        "openai-organization": "org-other",
        "cookie": "session=1",
        "x-forwarded-for": "10.0.0.1",
        "proxy-authorization": "Basic eDp5",
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "some-beta",
    }
    answer = await worker.post(f"{MESSAGES}?beta=true&key=x", {**SAID, "model": "m"}, headers=smuggled)
    assert answer.json()["content"] == [{"type": "text", "text": "ok"}]
    (seen,) = provider.seen
    assert seen.path == "/v1/messages"
    assert seen.headers["x-api-key"] == ANTHROPIC_KEY
    assert seen.headers["anthropic-beta"] == "some-beta"
    assert not seen.headers.keys() & {"authorization", "openai-organization", "cookie", "x-forwarded-for"}
    assert "proxy-authorization" not in seen.headers
    assert worker.token not in str(seen.headers)


@pytest.mark.parametrize("asked", [True, False])
async def test_a_stream_comes_through_and_is_counted(
    served: Wired, provider: FakeProvider, asked: bool
) -> None:
    """The usage is asked for in any case, and shown only to who asked."""
    provider.plan = [Say("hello there", (Call("c", "f", '{"a":1}'),), chunk_bytes=11)]
    worker = await served.worker(model="openai:m")
    options = {"stream_options": {"include_usage": True}} if asked else {}
    answer = await worker.post(CHAT, {**HELLO, "model": "m", "stream": True, **options})
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.text.endswith("data: [DONE]\n\n")
    events = events_of(answer.text)
    deltas = [choice["delta"] for event in events for choice in event["choices"]]
    assert "".join(delta.get("content") or "" for delta in deltas) == "hello there"
    assert bool(events[-1].get("usage")) is asked
    assert provider.seen[0].body["stream_options"] == {"include_usage": True}
    assert (await served.job(worker.job_id)).tokens_used == 120


async def test_messages_and_responses_stream_too(served: Wired, provider: FakeProvider) -> None:
    provider.plan = [Say("hello there")]
    claude = await served.worker(model="anthropic:m")
    answer = await claude.post(MESSAGES, {**SAID, "model": "m", "stream": True})
    assert [event["type"] for event in events_of(answer.text)][-1] == "message_stop"
    assert (await served.job(claude.job_id)).tokens_used == 120
    gpt = await served.worker(model="openai:m")
    answer = await gpt.post(RESPONSES, {"input": "hi", "model": "m", "stream": True, "store": False})
    assert [event["type"] for event in events_of(answer.text)][-1] == "response.completed"
    assert (await served.job(gpt.job_id)).tokens_used == 120


async def test_a_job_s_model_has_a_name_that_always_fits(served: Wired, provider: FakeProvider) -> None:
    worker = await served.worker(model="openai:maker/gpt-9:8b")
    for name in ("maker/gpt-9:8b", "portside", "openai:maker/gpt-9:8b"):
        assert (await worker.post(CHAT, {**HELLO, "model": name})).status_code == 200
    assert [seen.body["model"] for seen in provider.seen] == ["maker/gpt-9:8b"] * 3
    listed = (await worker.get("llm/openai/v1/models")).json()
    assert [one["id"] for one in listed["data"]] == ["maker/gpt-9:8b"]
    assert (await worker.get("llm/openai/v1/models/maker/gpt-9:8b")).json()["id"] == "maker/gpt-9:8b"
    assert problem(await worker.get("llm/openai/v1/models/other"))["code"] == "not_found"
    assert (await worker.get("llm/anthropic/v1/models")).json()["data"] == []


REFUSED: list[tuple[str, str, dict[str, Any], str]] = [
    ("openai:m", CHAT, {**HELLO, "model": "other"}, "own model"),
    ("openai:m", CHAT, HELLO, "own model"),
    ("openai:m", MESSAGES, {**SAID, "model": "m"}, "does not speak this API"),
    ("anthropic:m", CHAT, {**HELLO, "model": "m"}, "does not speak this API"),
    ("openai:m", CHAT, {**HELLO, "model": "m", "web_search_options": {}}, "web_search_options"),
    ("openai:m", CHAT, {**HELLO, "model": "m", "brand_new": 1}, "brand_new"),
    ("openai:m", RESPONSES, {"input": "x", "model": "m", "background": True}, "background"),
    ("openai:m", RESPONSES, {"input": "x", "model": "m", "prompt": {"id": "p"}}, "prompt"),
    ("openai:m", RESPONSES, {"input": "x", "model": "m", "tools": [{"type": "web_search"}]}, "web_search"),
    (
        "openai:m",
        RESPONSES,
        {"input": "x", "model": "m", "tools": [{"type": "mcp", "server_url": "http://x"}]},
        "mcp",
    ),
    (
        "openai:m",
        RESPONSES,
        {"input": [{"type": "additional_tools", "tools": []}], "model": "m"},
        "additional",
    ),
    (
        "openai:m",
        RESPONSES,
        {
            "model": "m",
            "input": [{"role": "user", "content": [{"type": "input_file", "file_url": "http://x/?q"}]}],
        },
        "fetch",
    ),
    (
        "openai:m",
        CHAT,
        {
            "model": "m",
            "messages": [
                {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/?q"}}]}
            ],
        },
        "fetch",
    ),
    (
        "openai:m",
        CHAT,
        {
            "model": "m",
            "messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}],
        },
        "files stored",
    ),
    ("anthropic:m", MESSAGES, {**SAID, "model": "m", "mcp_servers": []}, "mcp_servers"),
    ("anthropic:m", MESSAGES, {**SAID, "model": "m", "container": "c"}, "container"),
    (
        "anthropic:m",
        MESSAGES,
        {**SAID, "model": "m", "tools": [{"type": "web_fetch_20250910", "name": "web_fetch"}]},
        "web_fetch",
    ),
    (
        "anthropic:m",
        MESSAGES,
        {
            "model": "m",
            "max_tokens": 5,
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "t",
                            "content": [{"type": "image", "source": {"type": "url", "url": "http://x/?q"}}],
                        }
                    ],
                }
            ],
        },
        "fetch",
    ),
    (
        "anthropic:m",
        MESSAGES,
        {
            "model": "m",
            "max_tokens": 5,
            "messages": [{"role": "user", "content": [{"type": "container_upload", "file_id": "f"}]}],
        },
        "container_upload",
    ),
]


async def test_what_would_act_outside_of_the_model_is_refused_by_name(
    served: Wired, provider: FakeProvider
) -> None:
    """PD-31: a provider's network, files and stored things are no way out of the box."""
    workers = {model: await served.worker(model=model) for model in ("openai:m", "anthropic:m")}
    for model, path, body, word in REFUSED:
        refused = problem(await workers[model].post(path, body))
        assert (refused["status"], refused["code"]) == (400, "invalid_request"), body
        assert word in refused["detail"], (word, refused["detail"])
    assert provider.seen == []


async def test_tools_that_the_agent_runs_itself_and_their_arguments_pass(
    served: Wired, provider: FakeProvider
) -> None:
    worker = await served.worker(model="anthropic:m")
    tool = {"name": "fetch", "input_schema": {"type": "object", "properties": {"url": {"type": "string"}}}}
    call = {"type": "tool_use", "id": "t", "name": "fetch", "input": {"url": "http://x", "type": "image"}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "ok"}
    body: dict[str, Any] = {
        **SAID,
        "model": "m",
        "tools": [
            tool,
            {"type": "bash_20250124", "name": "bash", "input_schema": {"type": "object", "properties": {}}},
        ],
        "messages": [
            *HELLO["messages"],
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ],
    }
    assert (await worker.post(MESSAGES, body)).status_code == 200
    assert provider.seen[0].body == body


async def test_paths_beside_the_model_s_do_not_exist(served: Wired, provider: FakeProvider) -> None:
    worker = await served.worker(model="openai:m")
    for method, path in (
        ("GET", "llm/openai/v1/files"),
        ("POST", "llm/openai/v1/fine_tuning/jobs"),
        ("GET", "llm/openai/v1/organization/admin_api_keys"),
        ("POST", "llm/openai/v1/chat/completions/../../files"),
        ("POST", "llm/openai/v1/%63hat%2fcompletions%2f..%2ffiles"),
        ("GET", "llm/openai/v1/responses/resp_1"),
        ("POST", "llm/anthropic/v1/messages/batches"),
        ("POST", "llm/gemini/v1/chat/completions"),
    ):
        url = httpx.URL("http://portside").copy_with(raw_path=f"/worker/{worker.job_id}/{path}".encode())
        answer = await worker.http.request(method, url, content=b"{}")
        assert answer.status_code in {404, 405}, path
    assert provider.seen == []


async def test_a_provider_s_refusal_comes_through_without_secrets(
    served: Wired, provider: FakeProvider
) -> None:
    """BR-121, BR-137: status and words stay, the key and the account go; nobody asks again."""
    words = f"Incorrect key {SECRET} of organization org-AbCdEf123456, user_message too long"
    provider.plan = [
        Fail(400, {"error": {"message": words, "type": "invalid_request_error"}}),
        Fail(429, {"error": {"message": "slow down"}}, {"retry-after": "7", "set-cookie": "a=b"}),
    ]
    worker = await served.worker(model="openai:m")
    answer = await worker.post(CHAT, {**HELLO, "model": "m"})
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert "user_message too long" in answer.json()["error"]["message"]
    assert SECRET not in answer.text
    assert "org-AbCdEf123456" not in answer.text
    answer = await worker.post(CHAT, {**HELLO, "model": "m"})
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")
    assert "set-cookie" not in answer.headers
    assert len(provider.seen) == 2
    assert (await served.job(worker.job_id)).model_requests == 0


@pytest.mark.parametrize(
    ("fail", "status"),
    [
        (Fail(401, {"error": {"message": f"bad key {SECRET}"}}), 502),
        (Fail(403, {"error": {"message": "no access for org-AbCdEf123456"}}), 502),
        (Fail(302, "", {"location": "http://127.0.0.1:1/"}), 502),
        (Fail(503, "<html>proxy page of host-7</html>"), 502),
        (Fail(0), 502),
    ],
)
async def test_a_failure_that_is_not_the_job_s_is_a_problem_of_ours(
    served: Wired, provider: FakeProvider, fail: Fail, status: int
) -> None:
    provider.plan = [fail]
    worker = await served.worker(model="openai:m")
    told = problem(await worker.post(CHAT, {**HELLO, "model": "m"}))
    assert (told["status"], told["code"]) == (status, "model_error")
    assert "host-7" not in told["detail"]
    assert len(provider.seen) == 1


@pytest.mark.parametrize("then", ["reset", "error"])
async def test_a_stream_that_breaks_off_ends_with_an_error_event(
    served: Wired, provider: FakeProvider, then: Any
) -> None:
    """BR-146: half an answer never looks like a whole one; an error in the stream is freed of secrets."""
    error = {"type": "overloaded_error", "message": f"Overloaded {SECRET}"}
    provider.plan = [Say("hello there", cut_after=3, then=then, error=error)]
    worker = await served.worker(model="openai:m")
    answer = await worker.post(CHAT, {**HELLO, "model": "m", "stream": True})
    assert "event: error" in answer.text
    assert "[DONE]" not in answer.text
    assert SECRET not in answer.text


async def test_a_client_that_leaves_ends_the_request_and_what_came_is_charged(
    served: Wired, provider: FakeProvider
) -> None:
    """BR-146 (g)."""
    provider.plan = [Say("hello there, this is long", cut_after=3, then="silence")]
    worker = await served.worker(model="openai:m")
    body = {**HELLO, "model": "m", "stream": True}
    async with worker.http.stream("POST", f"/worker/{worker.job_id}/{CHAT}", json=body) as answer:
        assert await anext(answer.aiter_bytes())
    await within(10.0, provider.closed.wait())
    job = await served.until(worker.job_id, lambda job: job.model_requests == 1)
    assert 0 < job.tokens_used < 120
    (told,) = await _model_events(served, worker)
    assert told["whole"] is False


async def _model_events(served: Wired, worker: WorkerHands) -> list[dict[str, Any]]:
    async with asyncio.timeout(10.0):
        while not (found := await served.events(worker.job_id, "model")):  # noqa: ASYNC110 - another task writes it
            await asyncio.sleep(0.01)
    return found


async def test_a_budget_that_is_used_up_asks_nobody(served: Wired, provider: FakeProvider) -> None:
    """PD-17."""
    worker = await served.worker(model="openai:m", max_tokens=150)
    for _ in range(2):
        assert (await worker.post(CHAT, {**HELLO, "model": "m"})).status_code == 200
    refused = problem(await worker.post(CHAT, {**HELLO, "model": "m", "stream": True}))
    assert (refused["status"], refused["code"]) == (403, "budget_exhausted")
    assert len(provider.seen) == 2


async def test_a_long_conversation_goes_through_unchanged(served: Wired, provider: FakeProvider) -> None:
    worker = await served.worker(model="openai:m")
    long = {"model": "m", "messages": [{"role": "user", "content": "wörd " * 200_000}]}
    assert (await worker.post(CHAT, long)).status_code == 200
    assert provider.seen[0].body == long


async def test_bodies_are_bounded_and_read_strictly(served: Wired, provider: FakeProvider) -> None:
    worker = await served.worker(model="openai:m")
    url = f"/worker/{worker.job_id}/{CHAT}"
    for body, status in (
        (b"x" * (16 * 1024 * 1024 + 1), 413),
        (b"{", 400),
        (b"[]", 400),
        (b'{"model":"other","model":"m","messages":[]}', 400),
    ):
        assert problem(await worker.http.post(url, content=body))["status"] == status
    assert provider.seen == []


ANSWER = ModelAnswer(
    "hi ü", "tool_calls", (ModelToolCall("c1", "f", '{"a":1}'),), ModelUsage(input_tokens=30, output_tokens=5)
)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_scripted_model_answers_in_every_dialect(orchestrator: Wired, stream: bool) -> None:
    worker = await orchestrator.worker()
    orchestrator.model.then(ANSWER, ANSWER, ANSWER)
    function = {"name": "f", "description": "does f", "parameters": {"type": "object", "title": "T"}}
    asked: list[tuple[str, dict[str, Any]]] = [
        (CHAT, {**HELLO, "tools": [{"type": "function", "function": function}]}),
        (RESPONSES, {"input": "hi", "tools": [{"type": "function", **function}]}),
        (
            MESSAGES,
            {
                **SAID,
                "tools": [{"name": "f", "description": "does f", "input_schema": function["parameters"]}],
            },
        ),
    ]
    for path, body in asked:
        answer = await worker.post(path, {**body, "model": "portside", "stream": stream})
        assert answer.status_code == 200, answer.text
        found = events_of(answer.text) if stream else [answer.json()]
        assert "c1" in str(found)
        if not stream:
            assert "hi ü" in str(found)
    for request in orchestrator.model.requests:
        assert [(one.role, one.content) for one in request.messages] == [("user", "hi")]
        assert request.tools is not None
        ((tool,),) = (request.tools,)
        assert (tool.name, tool.description) == ("f", "does f")
        assert tool.parameters_json == '{"type":"object","title":"T"}'
    job = await orchestrator.job(worker.job_id)
    assert (job.model_requests, job.tokens_used) == (3, 105)

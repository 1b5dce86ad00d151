"""PD-31: the loopback relay between an agent's SDK and a real orchestrator with a provider on loopback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anthropic
import httpx
import jwt
import openai
import pytest

from tests.fakes.providers import Call, Fail, FakeProvider, Nothing, Say, fake_provider
from tests.fakes.tools import SECRET
from tests.fakes.worker_orchestrator import WorkerOrchestrator
from tests.support.deadline import eventually, within
from tests.support.orchestrator import Wired, WorkerHands, http_over, problem, wired
from worker.client import WorkerClient
from worker.clock import SystemClock
from worker.relay.rules import Refused, Target, sent, target_of
from worker.relay.server import MAX_CONNECTIONS, Relay
from worker.relay.upstream import Upstream
from worker.token import Token

HELLO: list[Any] = [{"role": "user", "content": "hi"}]
CHAT = "/llm/openai/v1/chat/completions"
BODY: dict[str, Any] = {"model": "m", "messages": HELLO}


@dataclass
class Relayed:
    """A job's relay, and what stands behind it."""

    url: str
    relay: Relay
    upstream: Upstream
    token: Token
    worker: WorkerHands
    orchestrator: Wired
    provider: FakeProvider

    def openai(self) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(
            base_url=f"{self.url}/llm/openai/v1", api_key="held-by-portside", max_retries=0
        )

    def anthropic(self) -> anthropic.AsyncAnthropic:
        return anthropic.AsyncAnthropic(
            base_url=f"{self.url}/llm/anthropic", api_key="held-by-portside", max_retries=0
        )

    def port(self) -> int:
        return self.relay.port


@asynccontextmanager
async def relayed(running: Wired, provider: FakeProvider, **asked: Any) -> AsyncGenerator[Relayed]:
    worker = await running.worker(**asked)
    token = Token(worker.token)
    async with http_over(socket=worker.socket) as http:
        client = WorkerClient(http, worker.job_id, token, clock=SystemClock())
        upstream = Upstream(
            lambda: http_over(socket=worker.socket),
            worker.job_id,
            token,
            renew=client.renew_token,
            clock=SystemClock(),
            outage_s=5.0,
        )
        relay = Relay(upstream)
        await relay.open()
        try:
            url = f"http://127.0.0.1:{relay.port}"
            yield Relayed(url, relay, upstream, token, worker, running, provider)
        finally:
            await relay.close()


@pytest.fixture
async def provider() -> AsyncIterator[FakeProvider]:
    async with fake_provider() as fake:
        yield fake


@pytest.fixture
async def served(home: Path, provider: FakeProvider) -> AsyncIterator[Wired]:
    settings: dict[str, Any] = {"ANTHROPIC_API_KEY": SECRET, "model_base_url": provider.url}
    async with wired(home, **settings) as running:
        yield running


@pytest.fixture
async def gpt(served: Wired, provider: FakeProvider) -> AsyncIterator[Relayed]:
    async with relayed(served, provider, model="openai:m", command="true") as found:
        yield found


async def test_openai_s_sdk_asks_with_and_without_a_stream(gpt: Relayed) -> None:
    gpt.provider.plan = [Say("hello there", (Call("c", "f", '{"a": 1}'),))]
    async with gpt.openai() as client:
        whole = await client.chat.completions.create(model="m", messages=HELLO)
        assert whole.choices[0].message.content == "hello there"
        stream = await client.chat.completions.create(model="m", messages=HELLO, stream=True)
        text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
        assert text == "hello there"
        answer = await client.responses.create(model="m", input="hi", store=False)
        assert answer.output_text == "hello there"
        assert [one.id async for one in client.models.list()] == ["m"]
    assert gpt.upstream.answered == 3
    assert {seen.headers["authorization"] for seen in gpt.provider.seen} == {f"Bearer {SECRET}"}


async def test_anthropic_s_sdk_asks_with_and_without_a_stream(served: Wired, provider: FakeProvider) -> None:
    provider.plan = [Say("hello there")]
    async with relayed(served, provider, model="anthropic:m") as found, found.anthropic() as client:
        whole = await client.messages.create(model="m", max_tokens=50, messages=HELLO)
        assert whole.content[0].model_dump()["text"] == "hello there"
        async with client.messages.stream(model="m", max_tokens=50, messages=HELLO) as stream:
            assert await stream.get_final_text() == "hello there"
    assert {seen.headers["x-api-key"] for seen in provider.seen} == {SECRET}


async def test_the_sdks_understand_what_is_refused(gpt: Relayed) -> None:
    gpt.provider.plan = [Fail(429, {"error": {"message": "slow down", "type": "rate_limit"}})]
    async with gpt.openai() as client:
        with pytest.raises(openai.RateLimitError, match="slow down"):
            await client.chat.completions.create(model="m", messages=HELLO)
        with pytest.raises(openai.BadRequestError, match="own model"):
            await client.chat.completions.create(model="other", messages=HELLO)
        with pytest.raises(openai.NotFoundError):
            await client.files.list()
    async with gpt.anthropic() as client:
        with pytest.raises(anthropic.BadRequestError, match="does not speak this API"):
            await client.messages.create(model="m", max_tokens=5, messages=HELLO)


async def test_a_broken_stream_is_an_error_for_the_sdk(gpt: Relayed) -> None:
    """BR-146."""
    gpt.provider.plan = [Say("hello there", cut_after=3, then="reset")]
    async with gpt.openai() as client:
        stream = await client.chat.completions.create(model="m", messages=HELLO, stream=True)
        with pytest.raises(openai.APIError):
            _ = [chunk async for chunk in stream]


async def test_only_the_two_apis_are_served(gpt: Relayed) -> None:
    """PD-31: a token is added to nothing else, however the path is written."""
    async with httpx.AsyncClient(base_url=gpt.url) as http:
        for method, path in (
            ("GET", "/"),
            ("GET", "/worker/x/job"),
            ("GET", "/llm/complete"),
            ("POST", "/llm/complete_with_tools"),
            ("GET", "/tools/catalog"),
            ("POST", "/llm/openai/v1/../../../credentials"),
            ("POST", "/llm/openai/v1/%2e%2e/%2e%2e/credentials"),
            ("POST", "/llm/openai/v1/..%2f..%2fcredentials"),
            ("POST", "//llm/openai/v1/chat/completions"),
            ("POST", "/llm/openai/v1//chat/completions"),
            ("POST", "/llm/openai/v2/chat/completions"),
            ("POST", "/api/v1/jobs"),
        ):
            url = httpx.URL(gpt.url).copy_with(raw_path=path.encode())
            answer = await http.request(method, url)
            assert (answer.status_code, problem(answer)["code"]) == (404, "not_found"), path
        assert (await http.put(f"{gpt.url}{CHAT}")).status_code == 405
    assert gpt.provider.seen == []


async def raw(gpt: Relayed, request: bytes, *, whole: bool = True) -> bytes:
    """What the relay says to bytes as they are."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gpt.port())
    try:
        writer.write(request)
        if whole:
            return await within(10.0, reader.read())
        return await within(10.0, reader.readuntil(b"\r\n\r\n"))
    finally:
        writer.close()


def written(*headers: str, body: bytes = b"") -> bytes:
    lines = [f"POST {CHAT} HTTP/1.1", "Host: x", "Content-Type: application/json", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def test_an_agent_s_own_authorisation_is_never_the_one_that_is_sent(gpt: Relayed) -> None:
    """DC-4: one header, several, under other names, folded, or with a blank before the colon."""
    body = json.dumps(BODY).encode()
    length = f"Content-Length: {len(body)}"
    smuggled: list[tuple[tuple[str, ...], bytes]] = [
        (("Authorization: Bearer mine",), b"200"),
        (("authorization: Bearer a", "AUTHORIZATION: Bearer b"), b"200"),
        (("X-Api-Key: mine", "Proxy-Authorization: Basic eDp5", "Cookie: a=b"), b"200"),
        (("Connection: authorization, close", "Authorization: Bearer mine"), b"200"),
        (("Authorization : Bearer mine",), b"400"),
        (("X-Other: x\r\n Authorization: Bearer mine",), b"200"),
        (("Accept: x\nAuthorization: Bearer mine",), b""),
    ]
    for headers, status in smuggled:
        said = await raw(gpt, written(*headers, length, "Connection: close", body=body))
        assert said.startswith(b"HTTP/1.1 " + status) or not status, headers
    for seen in gpt.provider.seen:
        assert seen.headers["authorization"] == f"Bearer {SECRET}"
        assert "mine" not in str(seen.headers)
        assert gpt.token.text not in str(seen.headers)


async def test_a_request_inside_of_a_request_is_none(gpt: Relayed) -> None:
    """PD-31: two lengths, or a length beside chunks, never make two requests of one."""
    inner = b"GET /llm/openai/v1/models HTTP/1.1\r\nHost: x\r\n\r\n"
    for headers in (
        ("Content-Length: 0", f"Content-Length: {len(inner)}"),
        ("Transfer-Encoding: chunked", "Transfer-Encoding: identity", "Content-Length: 4"),
        ("Content-Length: +5",),
        ("Transfer-Encoding: xchunked",),
    ):
        said = await raw(gpt, written(*headers, body=inner))
        assert said.count(b"HTTP/1.1 ") == 1, headers
        assert said.startswith((b"HTTP/1.1 400", b"HTTP/1.1 501")), headers
    assert gpt.provider.seen == []


async def test_a_body_that_is_too_large_is_refused_and_the_relay_goes_on(gpt: Relayed) -> None:
    async with httpx.AsyncClient(base_url=gpt.url, timeout=30.0) as http:
        answer = await http.post(CHAT, content=b"x" * (16 * 1024 * 1024 + 1))
        assert (answer.status_code, problem(answer)["code"]) == (413, "payload_too_large")
        assert (await http.post(CHAT, json=BODY)).status_code == 200


async def test_a_client_that_waits_for_a_go_ahead_gets_one(gpt: Relayed) -> None:
    body = json.dumps(BODY).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", gpt.port())
    writer.write(written("Expect: 100-continue", f"Content-Length: {len(body)}", "Connection: close"))
    assert (await within(10.0, reader.readuntil(b"\r\n\r\n"))).startswith(b"HTTP/1.1 100")
    writer.write(body)
    assert b"HTTP/1.1 200" in await within(10.0, reader.read())
    writer.close()


async def test_a_client_that_hangs_up_in_the_middle_ends_the_provider_s_request(gpt: Relayed) -> None:
    """BR-146 (g)."""
    gpt.provider.plan = [Say("hello there, this is long", cut_after=3, then="silence")]
    reader, writer = await asyncio.open_connection("127.0.0.1", gpt.port())
    writer.write(streamed())
    await within(60.0, reader.readuntil(b"data:"))
    writer.close()
    await within(60.0, gpt.provider.closed.wait())


async def test_a_client_that_hangs_up_before_an_answer_ends_the_provider_s_request(gpt: Relayed) -> None:
    """BR-146 (g)."""
    gpt.provider.plan = [Nothing()]
    _, writer = await asyncio.open_connection("127.0.0.1", gpt.port())
    writer.write(streamed())
    await eventually(lambda: gpt.provider.seen, 60.0)
    writer.close()
    await within(60.0, gpt.provider.closed.wait())


def streamed() -> bytes:
    body = json.dumps({**BODY, "stream": True}).encode()
    return written(f"Content-Length: {len(body)}", body=body)


async def expired_token(gpt: Relayed) -> str:
    """The job's own token, as it would be after its time."""
    (key,) = await gpt.orchestrator.stores.signing_keys.list()
    claims = jwt.decode(gpt.token.text, options={"verify_signature": False})
    past = {name: int(SystemClock().now().timestamp()) - 60 for name in ("iat", "nbf", "exp")}
    return jwt.encode(claims | past, key.private_pem, algorithm="EdDSA", headers={"kid": key.kid})


async def test_a_token_that_ran_out_is_renewed_within_a_request(gpt: Relayed) -> None:
    """BR-119: one that merely is none of ours is not, and opens nothing."""
    good, expired = gpt.token.text, await expired_token(gpt)
    async with httpx.AsyncClient(base_url=gpt.url) as http:
        gpt.token.text = good + "x"
        assert problem(await http.post(CHAT, json=BODY))["code"] == "token_invalid"
        gpt.token.text = expired
        assert (await http.post(CHAT, json=BODY)).status_code == 200
        assert gpt.token.text not in {good, expired}


async def test_another_job_s_token_opens_nothing(served: Wired, provider: FakeProvider) -> None:
    """BR-120."""
    other = await served.worker(model="openai:m")
    async with relayed(served, provider, model="openai:m") as found:
        found.token.text = other.token
        async with httpx.AsyncClient(base_url=found.url) as http:
            answer = await http.post(CHAT, json=BODY)
            assert (answer.status_code, problem(answer)["code"]) == (403, "job_mismatch")
            assert other.token not in answer.text
    assert provider.seen == []


async def test_an_orchestrator_that_is_away_is_an_answer_in_the_end(gpt: Relayed) -> None:
    gone = Upstream(
        lambda: http_over(socket=Path("/nonexistent")),
        "j",
        Token("t"),
        renew=_never,
        clock=SystemClock(),
        outage_s=0.0,
    )
    relay = Relay(gone)
    await relay.open()
    async with httpx.AsyncClient() as http:
        answer = await http.post(f"http://127.0.0.1:{relay.port}{CHAT}", json=BODY)
        assert (answer.status_code, problem(answer)["code"]) == (502, "model_error")
    await relay.close()


async def test_an_orchestrator_that_restarts_is_waited_for(tmp_path: Path) -> None:
    """BR-119: the request goes out once somebody listens, and the agent sees no failure."""
    away = WorkerOrchestrator(tmp_path)
    token = await asyncio.to_thread(away.token_file.read_text)
    upstream = Upstream(
        lambda: http_over(socket=away.socket),
        away.job_id,
        Token(token),
        renew=_never,
        clock=SystemClock(),
        outage_s=20.0,
    )
    relay = Relay(upstream)
    await relay.open()
    async with httpx.AsyncClient(timeout=30.0) as agent:
        asking = asyncio.create_task(agent.post(f"http://127.0.0.1:{relay.port}{CHAT}", json=BODY))
        await asyncio.to_thread(away.start)
        assert (await within(20.0, asking)).json()["asked"] == BODY
    await relay.close()
    await asyncio.to_thread(away.stop)


async def _never() -> None:
    raise AssertionError("nothing to renew")


async def test_only_so_many_connections_are_served_at_a_time(gpt: Relayed) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(MAX_CONNECTIONS):
            _, writer = await asyncio.open_connection("127.0.0.1", gpt.port())
            stack.callback(writer.close)
        reader, late = await asyncio.open_connection("127.0.0.1", gpt.port())
        stack.callback(late.close)
        assert await within(10.0, reader.read()) == b""


def test_the_rules_are_a_short_list() -> None:
    assert target_of("POST", f"{CHAT}?beta=true") == Target(CHAT[1:], "beta=true")
    assert isinstance(target_of("POST", f"{CHAT}?a=\r\nx"), Refused)
    assert isinstance(target_of("POST", "/llm/openai/v1/"), Refused)
    assert sent([("Accept", "a"), ("accept", "b"), ("X", "y"), ("Content-Type", "z" * 5000)]) == [
        ("accept", "a")
    ]

"""The client against a server on a unix socket that fails on demand."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fakes.clock import SteppingClock
from tests.fakes.worker_orchestrator import Drop, Hang, Page, Refuse, WorkerOrchestrator, say
from tests.support.deadline import within
from tool_registry.errors import Outcome, RemoteProblem
from worker.client import WorkerClient
from worker.clock import SystemClock
from worker.errors import AuthenticationExpired, NoAnswerInTime, OrchestratorUnreachable
from worker.protocol.job import CompletionReport, StatusReport
from worker.protocol.llm import CompleteWithToolsRequest, Message
from worker.protocol.tools import ExecuteRequest
from worker.retry import RetryPolicy
from worker.token import Token, keep_fresh

QUICK = RetryPolicy(first_s=0.01, longest_s=0.05, outage_s=5.0)


class Waits:
    """Sleeps that are remembered and take next to no time."""

    def __init__(self) -> None:
        self.asked: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.asked.append(seconds)
        await asyncio.sleep(min(seconds, 0.01))


@pytest.fixture
def orchestrator(tmp_path: Path) -> Iterator[WorkerOrchestrator]:
    fake = WorkerOrchestrator(tmp_path)
    fake.advertise("write", lambda _params: "written", timeout_s=60.0)
    fake.start()
    yield fake
    fake.stop()


@pytest.fixture
def waits() -> Waits:
    return Waits()


@pytest.fixture
def token(orchestrator: WorkerOrchestrator) -> Token:
    return Token(orchestrator.token_file.read_text())


@pytest.fixture
async def client(orchestrator: WorkerOrchestrator, token: Token, waits: Waits) -> AsyncIterator[WorkerClient]:
    transport = httpx.AsyncHTTPTransport(uds=str(orchestrator.socket))
    async with httpx.AsyncClient(transport=transport, base_url="http://portside") as http:
        yield WorkerClient(
            http,
            orchestrator.job_id,
            token,
            clock=SystemClock(),
            policy=QUICK,
            sleep=waits,
            jitter=lambda: 0.5,
        )


async def execute(client: WorkerClient, timeout_s: float = 60.0) -> str:
    request = ExecuteRequest(tool_name="write", params={"a": 1})
    answer = await client.execute(request, key="1:c", timeout_s=timeout_s)
    return str(answer.output.result)


async def test_a_connection_lost_after_the_tool_ran_does_not_run_it_again(
    client: WorkerClient, orchestrator: WorkerOrchestrator
) -> None:
    """Wire 4: the retry carries the same key and gets the stored outcome."""
    orchestrator.fail("tools/execute", Drop())
    assert await execute(client) == "written"
    assert [key for key, _, _ in orchestrator.executed] == ["1:c"]
    assert len(orchestrator.requests("tools/execute")) == 2


async def test_the_call_survives_a_restart_of_the_orchestrator(
    client: WorkerClient, orchestrator: WorkerOrchestrator
) -> None:
    orchestrator.stop()
    notices: list[str] = []
    client.line.notice = notices.append
    calling = asyncio.create_task(execute(client))
    await asyncio.sleep(0.05)
    assert not calling.done()
    await asyncio.to_thread(orchestrator.start)
    assert await within(10.0, calling) == "written"
    assert len(notices) == 2


async def test_an_orchestrator_that_is_away_for_minutes_is_waited_for_and_given_up_after_ten() -> None:
    clock = SteppingClock()
    back_at_s = 590.0

    def answer(request: httpx.Request) -> httpx.Response:
        if clock.elapsed_s < back_at_s:
            raise httpx.ConnectError("nobody listens", request=request)
        return httpx.Response(204)

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer), base_url="http://portside") as http:
        client = WorkerClient(http, "job", Token("t"), clock=clock, sleep=clock.sleep)
        assert await client.credentials() == ()
        assert 590 <= clock.elapsed_s <= 601
        assert max(clock.sleeps) <= 10
        back_at_s = float("inf")
        with pytest.raises(OrchestratorUnreachable, match="for 600 s"):
            await client.job()
        assert 1190 <= clock.elapsed_s <= 1225


async def test_the_tries_of_an_outage_do_not_count_for_a_connection_that_breaks_after_it() -> None:
    refused, broken = httpx.ConnectError("nobody listens"), httpx.RemoteProtocolError("closed")
    steps: list[Exception] = [*[refused] * 8, *[broken] * 5]
    clock = SteppingClock()

    def answer(_request: httpx.Request) -> httpx.Response:
        if steps:
            raise steps.pop(0)
        return httpx.Response(204)

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer), base_url="http://portside") as http:
        client = WorkerClient(http, "job", Token("t"), clock=clock, sleep=clock.sleep)
        assert await client.credentials() == ()


@pytest.mark.parametrize("status", [502, 503, 504])
async def test_a_retryable_refusal_is_tried_again(
    client: WorkerClient, orchestrator: WorkerOrchestrator, status: int
) -> None:
    orchestrator.fail("tools/execute", Refuse(status, "tool_unavailable", retryable=True))
    assert await execute(client) == "written"


async def test_a_refusal_that_is_not_retryable_is_raised_with_everything_it_says(
    client: WorkerClient, orchestrator: WorkerOrchestrator
) -> None:
    orchestrator.fail(
        "tools/execute", Refuse(502, "tool_failed", cause="crashed", detail="it broke", outcome="unknown")
    )
    with pytest.raises(RemoteProblem, match="it broke") as caught:
        await execute(client)
    problem = caught.value
    assert (problem.code, problem.cause, problem.outcome) == ("tool_failed", "crashed", Outcome.UNKNOWN)
    assert len(orchestrator.requests("tools/execute")) == 1


async def test_retries_end_after_five(client: WorkerClient, orchestrator: WorkerOrchestrator) -> None:
    orchestrator.fail("tools/execute", *[Refuse(503, "tool_unavailable", retryable=True)] * 9)
    with pytest.raises(RemoteProblem):
        await execute(client)
    assert len(orchestrator.requests("tools/execute")) == 6


async def test_retry_after_is_waited_for_at_least(
    client: WorkerClient, orchestrator: WorkerOrchestrator, waits: Waits
) -> None:
    """BR-137: 429 with Retry-After 3."""
    orchestrator.fail("tools/execute", Refuse(429, "rate_limited", retryable=True, retry_after_s=3.0))
    await execute(client)
    assert waits.asked[0] >= 3.0


async def test_a_retry_after_of_a_day_is_reported_instead_of_slept(
    client: WorkerClient, orchestrator: WorkerOrchestrator, waits: Waits
) -> None:
    """BR-137: never a silent sleep of 24 hours."""
    orchestrator.fail("tools/execute", Refuse(429, "rate_limited", retryable=True, retry_after_s=86_400.0))
    with pytest.raises(RemoteProblem) as caught:
        await execute(client)
    assert caught.value.retry_after_s == 86_400.0
    assert waits.asked == []


@pytest.mark.parametrize("header", ["soon", "Wed, 21 Oct 2026 07:28:00 GMT", "-1", ""])
async def test_an_unreadable_retry_after_counts_as_none(
    client: WorkerClient, orchestrator: WorkerOrchestrator, header: str
) -> None:
    """BR-137: an HTTP date or a word."""
    orchestrator.fail("tools/execute", Page(429, b"slow down", {"Retry-After": header}))
    assert await execute(client) == "written"


async def test_a_gateways_page_is_retried_and_an_empty_body_explained(
    client: WorkerClient, orchestrator: WorkerOrchestrator
) -> None:
    """BR-137: 503 with an HTML body; wire 1: an empty body."""
    orchestrator.fail("tools/execute", Page(503, b"<html>busy</html>"))
    assert await execute(client) == "written"
    orchestrator.fail("job", Page(500))
    with pytest.raises(RemoteProblem, match="HTTP 500 without a problem document: empty body"):
        await client.job()


async def test_a_failed_model_is_not_retried_here(
    client: WorkerClient, orchestrator: WorkerOrchestrator
) -> None:
    """BR-137: its key's owner has retried; two retry layers would multiply."""
    orchestrator.fail("llm/complete_with_tools", Refuse(502, "model_error", retryable=True))
    with pytest.raises(RemoteProblem):
        await client.complete_with_tools(
            CompleteWithToolsRequest(messages=[Message(role="user", content="x")], tools=[])
        )
    assert len(orchestrator.requests("llm/complete_with_tools")) == 1


async def test_a_conversation_of_several_megabytes_passes(
    client: WorkerClient, orchestrator: WorkerOrchestrator
) -> None:
    """Wire 3: more than 2 MB."""
    orchestrator.model = lambda _request: say("read")
    text = "ü" * 3_000_000
    answer = await client.complete_with_tools(
        CompleteWithToolsRequest(messages=[Message(role="user", content=text)], tools=[])
    )
    assert answer.content == "read"
    assert orchestrator.requests("llm/complete_with_tools")[0].json["messages"][0]["content"] == text


async def test_an_unanswered_call_ends_after_the_tools_time_with_unknown_fate(
    client: WorkerClient, orchestrator: WorkerOrchestrator
) -> None:
    release = threading.Event()
    orchestrator.fail("tools/execute", Hang(release))
    try:
        with pytest.raises(NoAnswerInTime, match="tools/execute"):
            await execute(client, timeout_s=-9.7)  # and ten seconds of margin
    finally:
        release.set()
    assert len(orchestrator.requests("tools/execute")) == 1


async def test_a_token_that_expired_during_an_outage_is_renewed_and_the_request_repeated(
    client: WorkerClient, orchestrator: WorkerOrchestrator, token: Token
) -> None:
    """BR-119: an only-just-expired token of a live job."""
    before = token.text
    orchestrator.expire_tokens()
    await client.status(StatusReport(state="running", iteration=1))
    assert token.text != before
    assert len(orchestrator.requests("token/renew")) == 1


async def test_many_requests_with_an_expired_token_renew_it_once(
    client: WorkerClient, orchestrator: WorkerOrchestrator
) -> None:
    orchestrator.expire_tokens()
    await asyncio.gather(*(client.status(StatusReport(state="running", iteration=i)) for i in range(8)))
    assert len(orchestrator.requests("token/renew")) == 1


async def test_a_token_that_can_not_be_renewed_says_authentication_expired(
    client: WorkerClient, orchestrator: WorkerOrchestrator
) -> None:
    """BR-119: the clear end of a token."""
    orchestrator.expire_tokens()
    orchestrator.renewable = False
    with pytest.raises(AuthenticationExpired, match="authentication expired"):
        await client.job()


async def test_renewal_goes_on_during_a_long_call_and_ends_with_the_job(
    client: WorkerClient, orchestrator: WorkerOrchestrator, token: Token
) -> None:
    """BR-119: at half of each life, from the background, until the job is over."""
    release = threading.Event()
    orchestrator.fail("tools/execute", Hang(release))
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            orchestrator.over = True
            release.set()
        await asyncio.sleep(0)

    calling = asyncio.create_task(execute(client))
    error = await within(10.0, keep_fresh(token, client.renew_token, sleep))
    assert waited[:2] == pytest.approx([1800.0, 1800.0])
    assert isinstance(error, RemoteProblem)
    assert error.code == "job_not_active"
    with pytest.raises(RemoteProblem):
        await calling


async def test_renewal_survives_an_outage(
    client: WorkerClient, orchestrator: WorkerOrchestrator, token: Token
) -> None:
    """BR-119: down for longer than a renewal's own patience."""
    client.line.policy = RetryPolicy(first_s=0.01, longest_s=0.01, outage_s=0.05)
    orchestrator.stop()
    orchestrator.expire_tokens()
    sleeps = 0

    async def sleep(_seconds: float) -> None:
        nonlocal sleeps
        sleeps += 1
        if sleeps == 3:
            await asyncio.to_thread(orchestrator.start)
        if sleeps == 4:
            orchestrator.over = True

    before = token.text
    await within(10.0, keep_fresh(token, client.renew_token, sleep))
    assert token.text != before


async def test_an_unchanged_catalogue_is_not_sent_again(
    client: WorkerClient, orchestrator: WorkerOrchestrator
) -> None:
    first = await client.catalog(None)
    assert first is not None
    assert await client.catalog(first.catalog_version) is None
    orchestrator.advertise("more", lambda _params: 1)
    second = await client.catalog(first.catalog_version)
    assert second is not None
    assert [tool.name for tool in second.tools] == ["write", "more"]


async def test_changes_are_streamed_again_after_a_broken_upload(
    client: WorkerClient, orchestrator: WorkerOrchestrator, tmp_path: Path
) -> None:
    patch = tmp_path / "p"
    patch.write_bytes(b"x" * 1_000_000)
    orchestrator.fail("workspace/changes", Page(503))
    digest = "sha-256=:2zzYXahwE4uCWVo3Sx0sZmB3jLyKzL8AoGAFU6O6nqE=:"
    with pytest.raises(RemoteProblem, match="digest"):
        await client.upload_changes(patch, digest)
    assert [len(one.body) for one in orchestrator.requests("workspace/changes")] == [1_000_000] * 2


async def test_the_same_report_again_is_fine_and_another_is_a_conflict(
    client: WorkerClient, orchestrator: WorkerOrchestrator
) -> None:
    orchestrator.changes = b""
    orchestrator.fail("complete", Drop())
    await client.report(CompletionReport(outcome="completed"))
    with pytest.raises(RemoteProblem) as caught:
        await client.report(CompletionReport(outcome="failed"))
    assert caught.value.code == "conflict"


async def test_the_token_is_sent_as_bearer_and_shown_nowhere(
    client: WorkerClient, orchestrator: WorkerOrchestrator, token: Token
) -> None:
    await client.job()
    assert orchestrator.seen[0].headers["authorization"] == f"Bearer {token.text}"
    assert token.text not in repr(token)


async def test_the_schema_of_a_request_is_the_catalogues_text(
    client: WorkerClient, orchestrator: WorkerOrchestrator
) -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "$defs": {"b": {}, "a": {}},
        "title": "Größe",
        "properties": {"x": {"maximum": 1e22}},
    }
    orchestrator.advertise("odd", lambda _params: 1, schema)
    catalog = await client.catalog(None)
    assert catalog is not None
    await client.complete_with_tools(
        CompleteWithToolsRequest(messages=[Message(role="user", content="x")], tools=catalog.tools)
    )
    sent = orchestrator.requests("llm/complete_with_tools")[0].json["tools"][-1]
    assert json.dumps(sent["parameters"]) == json.dumps(schema)

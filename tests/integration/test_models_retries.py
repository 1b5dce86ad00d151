"""Waiting and giving up, against a provider on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import pytest

from orchestrator.adapters.models.hosted import HostedModels, Timeouts
from orchestrator.adapters.models.retries import ProviderRetries
from orchestrator.ports.models import ModelAnswer, ModelError, ModelMessage, ModelRequest
from tests.fakes.clock import SteppingClock
from tests.fakes.providers import Call, Fail, FakeProvider, Reply, Say, Seen, fake_provider
from tests.support.models import KEY, Dialect, HostedUnderTest

OVERFLOW = "This model's maximum context length is 8000 tokens, you asked for 9000"


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


async def test_retry_after_is_waited_out_and_the_wait_is_told(hosted: HostedUnderTest) -> None:
    """BR-137 a: 429 with Retry-After: 3, twice, then an answer."""
    slow = Fail(429, {"error": {"message": "slow down"}}, {"retry-after": "3"})
    hosted.fake.plan = [slow, slow, Say("done")]
    answer = await hosted.ask()
    assert answer.content == "done"
    assert len(hosted.fake.seen) == 3
    assert all(seconds >= 3 for seconds in hosted.clock.sleeps)
    assert [(wait.job_id, wait.reason) for wait in hosted.waits] == [("job-1", "429: slow down")] * 2
    assert [wait.seconds for wait in hosted.waits] == hosted.clock.sleeps


@pytest.mark.parametrize(
    ("outage_s", "headers"), [(90, {}), (180, {}), (420, {"retry-after": "110"})], ids=["90", "180", "420"]
)
async def test_an_overload_of_minutes_is_survived_with_growing_waits(
    hosted: HostedUnderTest, outage_s: float, headers: dict[str, str]
) -> None:
    """BR-137 b: 529 for 90 s and for three minutes, and for seven when the provider says how long to wait."""

    def reply(_seen: Seen) -> Reply:
        over = hosted.clock.elapsed_s >= outage_s
        return Say("back") if over else Fail(529, {"error": {"message": "Overloaded"}}, headers)

    hosted.fake.reply = reply
    assert (await hosted.ask()).content == "back"
    if not headers:
        assert hosted.clock.sleeps == sorted(set(hosted.clock.sleeps))
    assert outage_s <= hosted.clock.elapsed_s <= 480


async def test_an_overload_that_does_not_end_is_given_up_within_the_budget(hosted: HostedUnderTest) -> None:
    """BR-137: whatever the provider asks for, no try begins later than eight minutes after the first."""
    hosted.fake.plan = [Fail(529, {"error": {"message": "Overloaded"}}, {"retry-after": "118"})]
    with pytest.raises(ModelError, match="Overloaded"):
        await hosted.ask()
    assert 300 <= hosted.clock.elapsed_s <= 480


@pytest.mark.parametrize(
    "failure",
    [
        Fail(500, {"error": {"message": "oops"}}),
        Fail(503, "<html><head><title>x</title></head><body>Bad gateway</body></html>"),
        Fail(408),
        Fail(409),
        Fail(425),
        Fail(0),
        Say("half an answer", cut_after=3, then="reset"),
        Say("half an answer", cut_after=3),
        Say("half an answer", cut_after=3, then="error"),
        Fail(200, "<html>a proxy's page</html>"),
        Fail(200, {"error": {"code": 503, "message": "no capacity"}}),
    ],
)
async def test_a_passing_failure_is_asked_again_once(hosted: HostedUnderTest, failure: Reply) -> None:
    """BR-137 c d h, BR-146 c d: 500, HTML, resets before and after headers, broken streams."""
    hosted.fake.plan = [failure, Say("whole")]
    assert (await hosted.ask()).content == "whole"
    assert len(hosted.fake.seen) == 2
    assert len(hosted.waits) == 1
    assert "<" not in hosted.waits[0].reason


@pytest.mark.parametrize(
    ("status", "fatal"), [(400, False), (401, True), (403, True), (404, True), (422, False)]
)
async def test_a_refusal_ends_at_once_with_the_providers_words_without_the_key(
    hosted: HostedUnderTest, status: int, *, fatal: bool
) -> None:
    """BR-137 e f: 400 and 401 fail at once with the provider's message."""
    hosted.fake.plan = [Fail(status, {"error": {"message": f"no: {KEY} is wrong " + "x" * 5000}})]
    with pytest.raises(ModelError) as caught:
        await hosted.ask()
    assert len(hosted.fake.seen) == 1
    assert f"{status}: no: [redacted:model key] is wrong" in caught.value.message
    assert len(caught.value.message) < 600
    assert (caught.value.status, caught.value.retryable, caught.value.fatal) == (502, False, fatal)


async def test_an_empty_account_is_not_asked_again_although_it_says_429(hosted: HostedUnderTest) -> None:
    hosted.fake.plan = [Fail(429, {"error": {"code": "insufficient_quota", "message": "pay first"}})]
    with pytest.raises(ModelError, match="pay first") as caught:
        await hosted.ask()
    assert len(hosted.fake.seen) == 1
    assert caught.value.cause == "quota"


async def test_a_day_of_retry_after_is_capped_and_then_given_up(hosted: HostedUnderTest) -> None:
    """BR-137 g: Retry-After: 86400 is never slept through."""
    hosted.fake.plan = [Fail(429, {"error": {"message": "tomorrow"}}, {"retry-after": "86400"})]
    with pytest.raises(ModelError, match="after 5 tries") as caught:
        await hosted.ask()
    assert max(hosted.clock.sleeps) <= 120
    assert caught.value.status == 429
    assert caught.value.retry_after_s == 86400


@pytest.mark.parametrize("said", ["soon", "", "-5", "nan", "Mon, 30 Nov 2026 12:00:20 GMT"])
async def test_an_odd_retry_after_still_leads_to_one_sane_wait(hosted: HostedUnderTest, said: str) -> None:
    """BR-137 g: a date is understood, garbage is not believed."""
    hosted.fake.plan = [Fail(429, {"error": {"message": "slow"}}, {"retry-after": said}), Say("ok")]
    await hosted.ask()
    low, high = (20, 22) if "GMT" in said else (1.8, 2.6)
    assert low <= hosted.clock.sleeps[0] <= high


async def test_five_requests_are_the_most_one_call_makes(hosted: HostedUnderTest) -> None:
    """BR-137: upstream requests counted, no layer multiplies another."""
    hosted.fake.plan = [Fail(500, {"error": {"message": "down"}})]
    with pytest.raises(ModelError) as caught:
        await hosted.ask()
    assert len(hosted.fake.seen) == 5
    assert not caught.value.retryable


async def test_ten_jobs_return_spread_out_and_none_asks_more_than_it_must(fake: FakeProvider) -> None:
    """BR-137: 10 jobs at once don't retry in step."""
    fake.plan = [*[Fail(429, {"error": {"message": "slow"}})] * 10, Say("ok")]
    jobs = [HostedUnderTest("openai", fake) for _ in range(10)]
    async with anyio.create_task_group() as group:
        for number, job in enumerate(jobs):
            group.start_soon(job.ask, (ModelMessage("user", "hi"),), None, f"job-{number}")
    assert len(fake.seen) == 20
    waits = [wait.seconds for job in jobs for wait in job.waits]
    assert len(waits) == 10
    assert max(waits) - min(waits) > 0.01
    for job in jobs:
        await job.model.close()


async def test_cancelling_during_a_wait_works_at_once(fake: FakeProvider) -> None:
    """BR-137: a cancel does not wait for the provider."""
    waiting = anyio.Event()

    async def on_wait(_job_id: str, _seconds: float, _reason: str) -> None:
        waiting.set()

    fake.plan = [Fail(429, {"error": {"message": "slow"}}, {"retry-after": "100"})]
    model = HostedModels(
        "openai", api_key=KEY, base_url=fake.url, retries=ProviderRetries(on_wait, SteppingClock())
    )
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(model.complete, ModelRequest("job-1", "openai:m", (ModelMessage("user", "hi"),)))
            await waiting.wait()
            group.cancel_scope.cancel()
    await model.close()


async def test_cancelling_during_an_answer_closes_the_providers_connection(hosted: HostedUnderTest) -> None:
    """BR-146 g: the upstream request is closed at once."""
    hosted.fake.plan = [Say("half an answer", cut_after=3, then="silence")]
    async with anyio.create_task_group() as group:
        group.start_soon(hosted.ask)
        with anyio.fail_after(5):
            while not hosted.fake.seen:
                await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    with anyio.fail_after(5):
        await hosted.fake.closed.wait()


@pytest.mark.parametrize("then", ["silence", "pings"])
@pytest.mark.parametrize("cut_after", [0, 4])
async def test_a_stream_that_falls_silent_or_only_pings_is_dropped_and_asked_again(
    fake: FakeProvider, cut_after: int, then: str
) -> None:
    """BR-146 a b: an idle stream is noticed; pings are not progress."""
    for dialect in ("openai", "anthropic"):
        job = HostedUnderTest(dialect, fake, Timeouts(first_event_s=0.3, idle_s=0.3))
        stalled = Say(
            "a much longer answer", cut_after=cut_after, then="pings" if then == "pings" else "silence"
        )
        fake.plan = [stalled, Say("whole")]
        assert (await job.ask()).content == "whole"
        assert [wait.reason for wait in job.waits] == ["the provider fell silent"]
        await job.model.close()


async def test_a_call_ends_when_its_total_time_is_over(fake: FakeProvider) -> None:
    job = HostedUnderTest("openai", fake, Timeouts(total_s=0.3))
    fake.plan = [Say("never whole", cut_after=2, then="silence")]
    with pytest.raises(ModelError) as caught:
        await job.ask()
    assert (caught.value.status, caught.value.cause) == (504, "timeout")
    await job.model.close()


@pytest.mark.parametrize(
    "overflow",
    [
        Fail(400, {"error": {"code": "context_length_exceeded", "message": "too long"}}),
        Fail(400, {"error": {"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"}}),
        Fail(400, {"error": {"message": OVERFLOW}}),
        Fail(413, "<html>Request Entity Too Large</html>"),
        Fail(413, {"error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}),
        Fail(200, {"error": {"code": "context_length_exceeded", "message": "too long"}}),
        Fail(200, {"type": "error", "error": {"type": "invalid_request_error", "message": OVERFLOW}}),
        Say("h", cut_after=1, then="error", error={"type": "invalid_request_error", "message": OVERFLOW}),
    ],
)
async def test_a_request_too_long_is_recognised_in_every_form(
    hosted: HostedUnderTest, overflow: Reply
) -> None:
    """BR-144 e: 400, 413, 200 with an error body or event."""
    hosted.fake.plan = [overflow]
    with pytest.raises(ModelError) as caught:
        await hosted.ask()
    assert caught.value.cause == "context_overflow"
    assert len(hosted.fake.seen) == 1
    assert not caught.value.fatal


async def test_a_half_tool_call_of_a_broken_stream_is_never_answered(hosted: HostedUnderTest) -> None:
    """BR-146 c: complete means that a finish reason was seen."""
    call = Call("c1", "write_file", '{"path":"big.py","content":"def f():"}')
    hosted.fake.plan = [Say(calls=(call,), cut_after=5), Say("again")]
    assert await hosted.ask() == ModelAnswer("again", "stop", usage=(await hosted.ask()).usage)


async def test_characters_split_between_chunks_arrive_whole(hosted: HostedUnderTest) -> None:
    """BR-146 f: chunks of one byte."""
    hosted.fake.plan = [Say("naïve 名前 \U0001f600", chunk_bytes=1)]
    assert (await hosted.ask()).content == "naïve 名前 \U0001f600"

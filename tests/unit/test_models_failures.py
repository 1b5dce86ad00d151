"""What a provider's failure means, and how long is waited."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from orchestrator.domain.model_failures import ProviderFailure, Verdict, judge
from orchestrator.domain.retry_waits import RetryWaits, asked_wait_s

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
RETRIED = {408, 409, 425, 429, 500, 502, 503, 504, 520, 524, 529}


@pytest.mark.parametrize("status", range(400, 600))
def test_every_status_is_asked_again_or_not_as_its_meaning_says(status: int) -> None:
    verdict = judge(ProviderFailure("answer", "said", status))
    assert verdict.retry == (status in RETRIED or status >= 500)
    assert not (verdict.retry and verdict.fatal)


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens",
        "prompt is too long: 213456 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000",
        "the request exceeds the available context size, try increasing it",
        "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).",
        "Please reduce the length of the messages or completion.",
        "Input is too long for requested model.",
        "This model's maximum prompt length is 131072 but the request contains 150000 tokens.",
        "Request too large for gpt in organization org on tokens per min (TPM): Limit 30000, Requested 45000",
        "Your input exceeds the context window of this model.",
    ],
)
@pytest.mark.parametrize("status", [400, 413, 429, 500, None])
def test_the_words_of_every_provider_for_too_long_are_known(message: str, status: int | None) -> None:
    """BR-144 e: the same meaning whatever the status says."""
    assert judge(ProviderFailure("answer", message, status)) == Verdict("context_overflow")


def test_an_ordinary_refusal_about_context_is_not_an_overflow() -> None:
    message = "Invalid schema for function 'x': In context=('properties', 'y'), array schema missing items."
    codes = frozenset({"invalid_request_error"})
    assert judge(ProviderFailure("answer", message, 400, codes)) == Verdict("refused")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3),
        ({"retry-after": " 2.5 "}, 2.5),
        ({"retry-after": "0"}, 0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Mon, 30 Nov 2026 12:01:00 GMT"}, 60),
        ({"retry-after": "Mon, 30 Nov 2026 11:00:00 GMT"}, 0),
        ({"retry-after": "Mon, 30 Nov 2026 12:01:00"}, 60),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "99 Foo 2026"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_each_form(headers: dict[str, str], seconds: float | None) -> None:
    assert asked_wait_s(headers, NOW) == seconds


@pytest.mark.parametrize("chance", [0.0, 0.5, 1.0])
def test_four_waits_outlast_three_minutes_and_a_fifth_is_not_taken(chance: float) -> None:
    waits = RetryWaits()
    elapsed = 0.0
    for tried in (1, 2, 3, 4):
        wait = waits.next_wait_s(tried=tried, asked_s=None, elapsed_s=elapsed, chance=chance)
        assert wait is not None
        elapsed += wait
    assert elapsed >= 180
    assert waits.next_wait_s(tried=5, asked_s=None, elapsed_s=elapsed, chance=chance) is None


def test_a_wait_that_would_pass_the_budget_is_not_begun() -> None:
    assert RetryWaits().next_wait_s(tried=1, asked_s=100, elapsed_s=479, chance=0) is None

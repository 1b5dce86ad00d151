"""Settings, token, limits, waits and the first messages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.fakes.worker_orchestrator import jwt_of
from tool_registry.errors import RemoteProblem
from worker.context import opening
from worker.limits import Spent, reached
from worker.protocol.job import AgentIdentity, JobDescription, JobLimits
from worker.protocol.llm import Usage
from worker.retry import RetryPolicy
from worker.settings import Settings, SettingsError, read_settings
from worker.token import DEFAULT_LIFE_S, Token, read_token

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_settings_come_from_the_command_line_then_the_environment_then_defaults() -> None:
    environ = {
        "PORTSIDE_JOB_ID": "j",
        "PORTSIDE_ATTEMPT": "2",
        "PORTSIDE_GRACE_S": "5",
        "PORTSIDE_WORKSPACE": "",
    }
    settings = read_settings(["--grace-s", "7.5", "--socket", "/x/s"], environ)
    assert settings == Settings("j", attempt=2, grace_s=7.5, socket=Path("/x/s"))


def test_a_missing_job_or_an_unreadable_number_names_the_variable() -> None:
    with pytest.raises(SettingsError, match="PORTSIDE_JOB_ID"):
        read_settings([], {})
    with pytest.raises(SettingsError, match="PORTSIDE_ATTEMPT must be int, not 'two'"):
        read_settings([], {"PORTSIDE_JOB_ID": "j", "PORTSIDE_ATTEMPT": "two"})


def test_a_token_is_read_once_stripped_and_shown_nowhere(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("abc.def.ghi\n")
    token = read_token(file)
    assert token.text == "abc.def.ghi"
    assert "abc" not in f"{token!r} {token}"
    file.write_text("\n")
    with pytest.raises(ValueError, match="empty"):
        read_token(file)


def test_a_tokens_life_is_the_difference_of_its_claims() -> None:
    """BR-119: a clock that is off does no harm."""
    assert Token(jwt_of(1, 60.0, 5.0)).life_s == 60.0
    assert Token("opaque").life_s == DEFAULT_LIFE_S
    assert Token("a.%%%.c").life_s == DEFAULT_LIFE_S
    assert Token("a.W10.c").life_s == DEFAULT_LIFE_S


def test_waits_grow_to_a_bound_and_retry_after_is_a_floor() -> None:
    """BR-137: growing, jittered, bounded."""
    policy = RetryPolicy(first_s=0.5, longest_s=4.0)
    assert [policy.delay_s(tries, 1.0) for tries in (1, 2, 3, 4, 5, 999)] == [0.5, 1.0, 2.0, 4.0, 4.0, 4.0]
    assert policy.delay_s(1, 0.0) == 0.25
    assert policy.delay_s(1, 0.0, retry_after_s=3.0) == 3.0


@pytest.mark.parametrize(
    ("status", "code", "retryable", "again"),
    [
        (429, "rate_limited", False, True),
        (503, "tool_unavailable", True, True),
        (503, "tool_unavailable", False, False),
        (504, "tool_timeout", True, True),
        (502, "model_error", True, False),
        (429, "model_error", True, False),
        (500, "internal", True, False),
        (400, "invalid_request", True, False),
        (409, "job_not_active", False, False),
    ],
)
def test_only_answers_that_invite_it_are_retried(
    status: int, code: str, retryable: bool, again: bool
) -> None:
    """BR-137: 400 and 401 fail at once; a model's failure is retried by one owner only."""
    problem = RemoteProblem("x", code=code, retryable=retryable)
    assert RetryPolicy().may_retry(status, problem) is again


def test_each_limit_has_its_own_reason() -> None:
    limits = JobLimits(max_iterations=2, deadline_at=NOW, max_tokens=10)
    before = NOW - timedelta(seconds=1)
    spent = Spent()
    assert reached(limits, spent, before) is None
    assert "deadline" in str(reached(limits, spent, NOW))
    spent.iterations = 2
    assert "2 iterations" in str(reached(limits, spent, before))
    spent.iterations = 1
    spent.add(Usage(input_tokens=6, output_tokens=4))
    assert "10 tokens" in str(reached(limits, spent, before))


def job(system_prompt: str | None = None) -> JobDescription:
    return JobDescription(
        job_id="j",
        title="t",
        task="the {workspace} task",
        agent=AgentIdentity(name="a", instance_id="i", network="n"),
        limits=JobLimits(deadline_at=NOW),
        system_prompt=system_prompt,
        protocol_version="1",
    )


def test_the_opening_is_system_instructions_task() -> None:
    """Loop 33: the task is a user message; instructions are one message of their own."""
    messages = opening(job("Be brave."), "/w", ["from gh: one", "from fs: two"])
    assert [one.role for one in messages] == ["system", "system", "user"]
    assert "/w" in str(messages[0].content)
    assert str(messages[0].content).endswith("Be brave.")
    assert "one\n\nfrom fs: two" in str(messages[1].content)
    assert messages[2].content == "the {workspace} task"


def test_without_instructions_there_is_no_message_for_them() -> None:
    assert [one.role for one in opening(job(), "/w", [])] == ["system", "user"]


def test_the_model_is_told_which_hosts_its_commands_reach_or_that_there_is_no_network() -> None:
    """PD-72."""
    sealed = str(opening(job(), "/w", [])[0].content)
    assert "There is no network." in sealed
    opened = job().model_copy(update={"allow_hosts": ["a.org", "*.b.org"]})
    told = str(opening(opened, "/w", [])[0].content)
    assert "a.org, *.b.org" in told
    assert "There is no network." not in told
    assert "{" not in sealed + told

"""PD-8: every way in which a job can end without its worker's word has a name."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from orchestrator.domain.jobs import Job, JobId, JobSpec, JobState
from orchestrator.domain.plan import Launch, Mark, Observed, PlanRules, Remove, Stop, plan

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
STARTED = NOW - timedelta(seconds=30)
NAME = "portside-j-1"


def job(state: JobState = JobState.RUNNING, **changes: Any) -> Job:
    given: dict[str, Any] = {
        "id": JobId("j"),
        "spec": JobSpec("t", "t", timeout_s=60.0),
        "state": state,
        "created_at": STARTED,
        "instance_id": "i",
        "attempt": 1,
        "sandbox_id": "c",
        "starting_at": STARTED,
        "registered_at": STARTED if state is JobState.RUNNING else None,
        "deadline_at": STARTED + timedelta(seconds=60) if state is JobState.RUNNING else None,
    }
    return Job(**(given | changes))


def running(**changes: Any) -> Observed:
    return Observed(NAME, "c", "j", 1, running=True, **changes)


def exited(code: int | None, **changes: Any) -> Observed:
    return Observed(NAME, "c", "j", 1, running=False, exit_code=code, **changes)


def marked(
    one: Job, sandbox: Observed | None, now: datetime = NOW, since: datetime | None = None
) -> tuple[str, str]:
    """The one mark that the plan makes."""
    (mark,) = plan([one], [sandbox] if sandbox else [], now, since=since)
    assert isinstance(mark, Mark)
    return mark.state, mark.reason


SMALL = JobSpec("t", "t", memory_bytes=128 * 2**20)


@pytest.mark.parametrize(
    ("one", "sandbox", "verdict"),
    [
        (job(spec=SMALL), exited(137, out_of_memory=True), ("failed", "out of memory (limit 128 MiB)")),
        (job(), exited(137, out_of_memory=True), ("failed", "out of memory (the default memory limit)")),
        (job(), exited(137), ("failed", "killed (SIGKILL), not by its memory limit")),
        (job(), exited(143), ("lost", "container was terminated from outside (engine restarted?)")),
        (job(), exited(0), ("failed", "worker exited with code 0 without a report")),
        (job(), exited(134), ("failed", "worker was killed by SIGABRT without a report")),
        (job(), exited(139), ("failed", "worker was killed by SIGSEGV without a report")),
        (job(), exited(3), ("failed", "worker exited with code 3 without a report")),
        (job(), exited(127, error="exec: python: not found"), ("failed", "container did not run: exec: python: not found")),
        (job(), None, ("lost", "container disappeared")),
        (job(JobState.STARTING), None, ("lost", "container disappeared")),
        (job(JobState.CANCELLING, reason="by hand"), None, ("cancelled", "by hand")),
        (job(JobState.CANCELLING, reason="by hand"), exited(143), ("cancelled", "by hand")),
        (job(JobState.CANCELLING, reason="by hand"), exited(137, out_of_memory=True), ("cancelled", "by hand")),
        (job(JobState.CANCELLING, sandbox_id=None), None, ("cancelled", "cancelled")),
        (job(JobState.CANCELLING, reason="x"), Observed(NAME, "c", "j", 1, running=False, started=False), ("cancelled", "x")),
        (job(JobState.QUEUED, attempt=0, cancel_requested_at=NOW), None, ("cancelled", "cancelled before it started")),
    ],
)  # fmt: skip
def test_an_end_has_its_name(one: Job, sandbox: Observed | None, verdict: tuple[str, str]) -> None:
    """BR-103 (d), BR-105, BR-109, BR-113 (a)."""
    assert marked(one, sandbox) == verdict


@pytest.mark.parametrize("code", [124, 137, 143])
def test_an_exit_after_the_deadline_is_the_deadline_s(code: int) -> None:
    """The container ends itself when nobody is there to end it."""
    assert marked(job(), exited(code), NOW + timedelta(seconds=60)) == ("timed_out", "ran longer than 60 s")


def test_an_exit_after_the_deadline_and_before_it_are_told_apart_later() -> None:
    """The moment of the end counts, not the moment at which somebody looks again."""
    deadline, later = STARTED + timedelta(seconds=60), NOW + timedelta(hours=1)
    before = exited(3, ended_at=deadline - timedelta(seconds=1))
    assert marked(job(), before, later) == ("failed", "worker exited with code 3 without a report")
    assert marked(job(), exited(3, ended_at=deadline), later) == ("timed_out", "ran longer than 60 s")


def test_a_worker_gets_a_grace_after_its_deadline_to_report_and_is_stopped_then() -> None:
    """PD-50: it ends before anything is said, since its changes can be taken only then."""
    deadline = STARTED + timedelta(seconds=60)
    assert plan([job()], [running()], deadline + timedelta(seconds=19)) == []
    (stop,) = plan([job()], [running()], deadline + timedelta(seconds=20))
    assert stop == Stop(running(), "its time is up")


def test_a_container_that_can_not_be_stopped_does_not_hold_its_job_up_for_ever() -> None:
    late = STARTED + timedelta(seconds=60 + 20 + 120)
    assert marked(job(), running(), late) == (
        "timed_out",
        "ran longer than 60 s; its container could not be stopped",
    )
    (stop,) = plan([job()], [running()], late, since=late - timedelta(seconds=139))  # nobody has tried yet
    assert isinstance(stop, Stop)


@pytest.mark.parametrize("state", [JobState.RUNNING, JobState.CANCELLING])
def test_what_a_worker_that_began_left_is_recovered_unless_it_was_handed_over(state: JobState) -> None:
    """PD-50."""

    def recovers(**changes: Any) -> Observed | None:
        (mark,) = plan([job(state, **changes)], [exited(137)], NOW)
        assert isinstance(mark, Mark)
        return mark.recover

    assert recovers(working_at=NOW) == exited(137)
    assert recovers(working_at=NOW, changes_sha256="a") is None
    assert recovers() is None


def test_a_worker_that_does_not_register_fails_after_its_time() -> None:
    """BR-114."""
    starting = job(JobState.STARTING)
    assert plan([starting], [running()], STARTED + timedelta(seconds=60)) == []
    late = STARTED + timedelta(seconds=61)
    assert marked(starting, running(), late) == ("failed", "worker did not register within 60 s")


def test_time_in_which_nobody_listened_does_not_count() -> None:
    """BR-098: an adopted job's worker could not have registered."""
    starting, back = job(JobState.STARTING), STARTED + timedelta(hours=1)
    assert plan([starting], [running()], back + timedelta(seconds=59), since=back) == []
    assert marked(starting, running(), back + timedelta(seconds=61), back)[0] == "failed"


def test_a_launch_that_was_never_finished_is_tried_again_for_a_while() -> None:
    """BR-109: created or not, but never started, and its id never written down."""
    cut_off = job(JobState.STARTING, sandbox_id=None)
    created = Observed(NAME, "c", "j", 1, running=False, started=False)
    for seen in ([], [created]):
        assert plan([cut_off], seen, NOW) == [Launch(JobId("j"), 1)]
        (mark,) = plan([cut_off], seen, STARTED + timedelta(seconds=61))
        assert isinstance(mark, Mark)
        assert mark.reason == "its container could not be started within 60 s"


def test_a_cancelled_job_s_sandbox_is_stopped_before_anything_is_said() -> None:
    """BR-108: it is cancelling until nothing runs."""
    (stop,) = plan([job(JobState.CANCELLING)], [running()], NOW)
    assert isinstance(stop, Stop)


def test_a_worker_that_reported_gets_a_moment_to_leave() -> None:
    for state in (JobState.COMPLETED, JobState.FAILED, JobState.TIMED_OUT):
        done = job(state, finished_at=NOW, result={"outcome": "x"})
        assert plan([done], [running()], NOW + timedelta(seconds=19)) == []
        (stop,) = plan([done], [running()], NOW + timedelta(seconds=20))
        assert isinstance(stop, Stop)
        assert plan([done], [exited(0)], NOW) == [Remove(exited(0))]


def test_a_job_that_was_ended_from_here_loses_its_sandbox_at_once() -> None:
    (stop,) = plan([job(JobState.TIMED_OUT, finished_at=NOW)], [running()], NOW)
    assert isinstance(stop, Stop)


def test_an_older_attempt_s_sandbox_goes_and_the_present_one_stays() -> None:
    old, present = running(), Observed("portside-j-2", "d", "j", 2, running=True)
    (stop,) = plan([job(attempt=2)], [old, present], NOW)
    assert stop == Stop(old, "its job has ended")


def test_the_oldest_queued_jobs_are_launched_first() -> None:
    queued = [
        job(
            JobState.QUEUED,
            id=JobId(f"j{n}"),
            attempt=0,
            sandbox_id=None,
            created_at=NOW + timedelta(seconds=n),
        )
        for n in (3, 1, 2)
    ]
    actions = plan(queued, [], NOW, rules=PlanRules(max_running=2))
    assert actions == [Launch(JobId("j1"), 1), Launch(JobId("j2"), 1)]


def test_one_network_s_long_queue_delays_no_other() -> None:
    queued = [
        job(
            JobState.QUEUED,
            id=JobId(f"j{n}"),
            attempt=0,
            sandbox_id=None,
            created_at=NOW + timedelta(seconds=n),
            spec=JobSpec("t", "t", network="busy" if n < 3 else "other"),
        )
        for n in range(4)
    ]
    rules = PlanRules(max_running=3, max_running_per_network=2)
    assert plan(queued, [], NOW, rules=rules) == [
        Launch(JobId("j0"), 1),
        Launch(JobId("j3"), 1),
        Launch(JobId("j1"), 1),
    ]
    one_each = PlanRules(max_running=3, max_running_per_network=1)
    assert plan(queued, [], NOW, rules=one_each) == [Launch(JobId("j0"), 1), Launch(JobId("j3"), 1)]


def test_a_queued_job_under_way_takes_its_place() -> None:
    """It counts as running before the store says so."""
    queued = [
        job(
            JobState.QUEUED,
            id=JobId(f"j{n}"),
            attempt=0,
            sandbox_id=None,
            created_at=NOW + timedelta(seconds=n),
        )
        for n in (1, 2)
    ]
    assert plan(queued, [], NOW, busy={"portside-j1-1"}, rules=PlanRules(max_running=1)) == []

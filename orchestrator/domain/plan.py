"""What to do about jobs and sandboxes: decided purely, applied elsewhere.

`plan` compares what the store wants with what the engine reports. The same function covers the ordinary
course of a job, restart recovery, orphans, out of memory, exits without a report, deadlines and
cancellation while starting.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime, timedelta
from signal import Signals

from orchestrator.domain.jobs import Job, JobId, JobMode, JobState
from orchestrator.domain.queue import next_jobs


@dataclass(frozen=True, slots=True)
class Observed:
    """A sandbox as the engine reports it.

    Attributes:
        job_id: from its label; "" when it carries none.
        running: it runs or is paused.
        started: it was started at some time; one that never was is what a broken launch left.
        out_of_memory: exit 137 and the engine's flag agree.
        ended_at: when it stopped running; None while it runs, or when the engine does not say.
        error: the engine's own words.
    """

    name: str
    id: str
    job_id: str
    attempt: int
    running: bool
    started: bool = True
    exit_code: int | None = None
    out_of_memory: bool = False
    ended_at: datetime | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class PlanRules:
    """Bounds of the plan.

    Attributes:
        max_running: jobs under way together.
        max_running_per_network: of one network.
        finish_grace_s: for a worker to report after its deadline, or to exit after its report.
        unstoppable_s: after this much more a job ends although its sandbox can't be stopped.
    """

    max_running: int = 20
    max_running_per_network: int = 20
    register_timeout_s: float = 60.0
    finish_grace_s: float = 20.0
    unstoppable_s: float = 120.0


@dataclass(frozen=True, slots=True)
class Launch:
    """Start the job's present or next attempt; launching a name twice is launching it once."""

    job_id: JobId
    attempt: int


@dataclass(frozen=True, slots=True)
class Stop:
    """End a sandbox that still runs."""

    sandbox: Observed
    why: str


@dataclass(frozen=True, slots=True)
class Mark:
    """Move a job to a state, with the reason; `attempt` guards against a stale decision.

    Attributes:
        sandbox: whose last words belong to the reason; None when there is none.
        recover: the sandbox of a worker that began, ended and handed over no changes: what is in it is all
            that is left of them.
    """

    job_id: JobId
    attempt: int
    state: JobState
    reason: str
    sandbox: Observed | None = None
    recover: Observed | None = None


@dataclass(frozen=True, slots=True)
class Remove:
    """Take away a sandbox that has ended."""

    sandbox: Observed


Action = Launch | Stop | Mark | Remove


def sandbox_name(job_id: str, attempt: int) -> str:
    """The one name of an attempt's sandbox."""
    return f"portside-{job_id}-{attempt}"


def plan(
    jobs: Iterable[Job],
    observed: Iterable[Observed],
    now: datetime,
    *,
    since: datetime | None = None,
    busy: AbstractSet[str] = frozenset(),
    rules: PlanRules = PlanRules(),
) -> list[Action]:
    """Decide what to do now.

    Args:
        jobs: every job that is not at an end, and every job an observed sandbox belongs to.
        observed: every sandbox that carries this orchestrator's label.
        now: the present moment.
        since: when this orchestrator began to listen; a worker could not register before.
        busy: names of sandboxes with a launch, stop or removal under way; they are left alone.
        rules: the bounds.

    Returns:
        Actions that do not depend on one another. Never two launches for one job, never a stop of a
        sandbox whose job is well.
    """
    hosted = {job.id: job for job in jobs if job.spec.mode is JobMode.HOSTED}
    sandboxes = {one.name: one for one in observed}
    actions: list[Action] = []
    queued = [job for job in hosted.values() if job.state is JobState.QUEUED]
    active = [job for job in hosted.values() if job.state.active]
    for job in active:
        name = sandbox_name(job.id, job.attempt)
        if name not in busy:
            actions.extend(_for_active(job, sandboxes.get(name), now, since, rules))
    actions.extend(
        Mark(job.id, job.attempt, JobState.CANCELLED, "cancelled before it started")
        for job in queued
        if job.cancel_requested_at is not None
    )
    actions.extend(_for_queued(queued, active, busy, rules))
    actions.extend(_for_leftovers(hosted, sandboxes.values(), now, busy, rules))
    return actions


def _for_queued(
    queued: list[Job], active: list[Job], busy: AbstractSet[str], rules: PlanRules
) -> Iterator[Action]:
    """Launches; a job whose launch is under way counts as active before the store says so."""
    wanted = [job for job in queued if job.cancel_requested_at is None]
    launching = [job for job in wanted if sandbox_name(job.id, job.attempt + 1) in busy]
    starting = next_jobs(
        [job for job in wanted if job not in launching],
        [*active, *launching],
        most=rules.max_running,
        most_per_network=rules.max_running_per_network,
    )
    for job in starting:
        yield Launch(job.id, job.attempt + 1)


def _for_active(
    job: Job, sandbox: Observed | None, now: datetime, since: datetime | None, rules: PlanRules
) -> Iterator[Action]:
    if sandbox is None or not sandbox.started:
        yield _without_sandbox(job, now, since, rules)
    elif not sandbox.running:
        yield _after_exit(job, sandbox, now)
    elif job.state is JobState.CANCELLING:
        yield Stop(sandbox, "cancelled")
    elif job.deadline_at is not None and now >= job.deadline_at + timedelta(seconds=rules.finish_grace_s):
        yield _overdue(job, sandbox, now, max(job.deadline_at, since or job.deadline_at), rules)
    elif _never_registered(job, now, since, rules):
        reason = f"worker did not register within {rules.register_timeout_s:g} s"
        yield Mark(job.id, job.attempt, JobState.FAILED, reason, sandbox)


def _overdue(job: Job, sandbox: Observed, now: datetime, since: datetime, rules: PlanRules) -> Action:
    """Stopped first: what it changed is there only when nothing runs any more."""
    if now < since + timedelta(seconds=rules.finish_grace_s + rules.unstoppable_s):
        return Stop(sandbox, "its time is up")
    reason = f"{_ran_too_long(job)}; its container could not be stopped"
    return Mark(job.id, job.attempt, JobState.TIMED_OUT, reason, sandbox)


def _ran_too_long(job: Job) -> str:
    return f"ran longer than {job.spec.timeout_s:g} s"


def _never_registered(job: Job, now: datetime, since: datetime | None, rules: PlanRules) -> bool:
    if job.registered_at is not None or job.starting_at is None:
        return False
    begun = job.starting_at if since is None else max(job.starting_at, since)
    return now - begun > timedelta(seconds=rules.register_timeout_s)


def _without_sandbox(job: Job, now: datetime, since: datetime | None, rules: PlanRules) -> Action:
    if job.state is JobState.CANCELLING:
        return Mark(job.id, job.attempt, JobState.CANCELLED, job.reason or "cancelled")
    if job.state is not JobState.STARTING or job.registered_at is not None or job.sandbox_id is not None:
        return Mark(job.id, job.attempt, JobState.LOST, "container disappeared")
    if _never_registered(job, now, since, rules):
        reason = f"its container could not be started within {rules.register_timeout_s:g} s"
        return Mark(job.id, job.attempt, JobState.FAILED, reason)
    return Launch(job.id, job.attempt)


def _after_exit(job: Job, sandbox: Observed, now: datetime) -> Action:
    left = sandbox if job.working_at is not None and job.changes_sha256 is None else None
    if job.state is JobState.CANCELLING:
        return Mark(job.id, job.attempt, JobState.CANCELLED, job.reason or "cancelled", recover=left)
    state, reason = _exit_verdict(job, sandbox, now)
    return Mark(job.id, job.attempt, state, reason, sandbox, left)


def _exit_verdict(job: Job, sandbox: Observed, now: datetime) -> tuple[JobState, str]:
    """Why a sandbox ended before its worker reported."""
    if sandbox.out_of_memory:
        return JobState.FAILED, f"out of memory ({_limit(job)})"
    if job.deadline_at is not None and (sandbox.ended_at or now) >= job.deadline_at:
        return JobState.TIMED_OUT, _ran_too_long(job)
    if sandbox.exit_code == 143:
        return JobState.LOST, "container was terminated from outside (engine restarted?)"
    if sandbox.exit_code == 137:
        return JobState.FAILED, "killed (SIGKILL), not by its memory limit"
    if sandbox.error:
        return JobState.FAILED, f"container did not run: {sandbox.error[:500]}"
    signal_name = _SIGNALS.get(sandbox.exit_code or 0)
    if signal_name is not None:
        return JobState.FAILED, f"worker was killed by {signal_name} without a report"
    return JobState.FAILED, f"worker exited with code {sandbox.exit_code} without a report"


# As a shell says it: 128 and the signal's number. Those that engines send are told apart above.
_SIGNALS = {128 + one.value: one.name for one in Signals}


def _limit(job: Job) -> str:
    if job.spec.memory_bytes is None:
        return "the default memory limit"
    return f"limit {job.spec.memory_bytes // 2**20} MiB"


def _for_leftovers(
    jobs: dict[JobId, Job],
    sandboxes: Iterable[Observed],
    now: datetime,
    busy: AbstractSet[str],
    rules: PlanRules,
) -> Iterator[Action]:
    """Sandboxes that no live attempt needs: of ended jobs, of older attempts, of jobs nobody knows.

    One with changes that could not be recovered stays, ended, until its job is forgotten.
    """
    for sandbox in sandboxes:
        if sandbox.name in busy:
            continue
        job = jobs.get(JobId(sandbox.job_id))
        if job is not None and not job.state.terminal and sandbox.attempt >= job.attempt:
            continue
        if not sandbox.running:
            if job is None or not (job.unsaved and sandbox.name == sandbox_name(job.id, job.attempt)):
                yield Remove(sandbox)
        elif job is None or not _still_leaving(job, sandbox, now, rules):
            yield Stop(sandbox, "its job has ended" if job else "nobody knows its job")


def _still_leaving(job: Job, sandbox: Observed, now: datetime, rules: PlanRules) -> bool:
    """A worker that has reported gets a moment to exit by itself."""
    if sandbox.attempt != job.attempt or job.finished_at is None or not job.reported:
        return False
    return now - job.finished_at < timedelta(seconds=rules.finish_grace_s)

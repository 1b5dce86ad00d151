"""PD-8, PD-50: what `plan` decides in any world, and that every world it is applied to comes to rest."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.jobs import Job, JobId, JobMode, JobSpec, JobState
from orchestrator.domain.plan import (
    Action,
    Launch,
    Mark,
    Observed,
    PlanRules,
    Remove,
    Stop,
    plan,
    sandbox_name,
)

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
RULES = PlanRules(max_running=3, register_timeout_s=60.0, finish_grace_s=20.0)
NAMES = [f"job-{number}" for number in range(5)]


@st.composite
def jobs(draw: st.DrawFn, job_id: str) -> Job:
    """A job as it may stand: its times and marks fit its state."""
    state = draw(st.sampled_from(JobState))
    started = state is not JobState.QUEUED
    at = NOW - timedelta(seconds=draw(st.integers(0, 4000)))
    registered = state in {JobState.RUNNING, JobState.COMPLETED} or (started and draw(st.booleans()))
    if state is JobState.STARTING:
        registered = False
    cancelled = state in {JobState.CANCELLING, JobState.CANCELLED}
    return Job(
        id=JobId(job_id),
        spec=JobSpec(
            "t",
            "t",
            mode=draw(st.sampled_from([JobMode.HOSTED, JobMode.HOSTED, JobMode.IN_PROCESS])),
            timeout_s=600,
        ),
        state=state,
        created_at=at,
        instance_id=f"i-{job_id}",
        attempt=draw(st.integers(1, 3)) if started else 0,
        sandbox_id="id" if registered or (started and draw(st.booleans())) else None,
        cancel_requested_at=at if cancelled or (not started and draw(st.booleans())) else None,
        starting_at=at if started else None,
        registered_at=at if registered else None,
        working_at=at if registered and draw(st.booleans()) else None,
        changes_sha256="c" if state is JobState.COMPLETED or (registered and draw(st.booleans())) else None,
        deadline_at=at + timedelta(seconds=600) if registered else None,
        finished_at=at if state.terminal else None,
        result={"outcome": "completed"} if state is JobState.COMPLETED else None,
    )


@st.composite
def sandboxes(draw: st.DrawFn) -> Observed:
    """One sandbox: of a job's present, earlier or later attempt, of nobody, or under a foreign name."""
    job_id = draw(st.sampled_from([*NAMES, "unknown", ""]))
    attempt = draw(st.integers(0, 4))
    name = draw(st.sampled_from([sandbox_name(job_id, attempt), sandbox_name(job_id, attempt), "odd-name"]))
    started = draw(st.sampled_from([True, True, True, False]))
    running = started and draw(st.booleans())
    code = None if running or not started else draw(st.sampled_from([0, 1, 124, 137, 143]))
    return Observed(
        name,
        "id-" + name,
        job_id,
        attempt,
        running,
        started,
        code,
        out_of_memory=code == 137 and draw(st.booleans()),
    )


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[Job], list[Observed]]:
    known = draw(st.lists(st.sampled_from(NAMES), unique=True))
    held = [draw(jobs(job_id)) for job_id in known]
    seen = {one.name: one for one in draw(st.lists(sandboxes(), max_size=4, unique_by=lambda one: one.name))}
    for job in held:
        if draw(st.booleans()):  # left to chance, few jobs would have a sandbox of their own
            name = present_of(job)
            seen[name] = replace(draw(sandboxes()), name=name, job_id=job.id, attempt=job.attempt)
    return held, list(seen.values())


def present_of(job: Job) -> str:
    return sandbox_name(job.id, job.attempt)


def named(action: Action) -> str:
    match action:
        case Launch(job_id, attempt) | Mark(job_id, attempt):
            return sandbox_name(job_id, attempt)
        case Stop(sandbox) | Remove(sandbox):
            return sandbox.name


@given(worlds())
def test_a_job_is_launched_once_and_never_beside_its_own_sandbox(
    world: tuple[list[Job], list[Observed]],
) -> None:
    known, seen = world
    launches = [one for one in plan(known, seen, NOW, rules=RULES) if isinstance(one, Launch)]
    assert len({one.job_id for one in launches}) == len(launches)
    by_id = {job.id: job for job in known}
    started = {one.name for one in seen if one.started}
    for launch in launches:
        job = by_id[launch.job_id]
        assert job.state in {JobState.QUEUED, JobState.STARTING}
        assert job.spec.mode is JobMode.HOSTED
        assert launch.attempt == job.attempt + (job.state is JobState.QUEUED)
        assert job.state is JobState.QUEUED or present_of(job) not in started


@given(worlds())
def test_the_sandbox_of_a_job_that_is_well_is_left_alone(world: tuple[list[Job], list[Observed]]) -> None:
    """Neither stopped nor removed; a stop comes only after a cancellation, the deadline's grace or the end."""
    known, seen = world
    by_id = {job.id: job for job in known if job.spec.mode is JobMode.HOSTED}
    for action in plan(known, seen, NOW, rules=RULES):
        if isinstance(action, Stop | Remove):
            job = by_id.get(JobId(action.sandbox.job_id))
            current = job is not None and action.sandbox.attempt == job.attempt
            if job is not None and current and not job.state.terminal:
                assert isinstance(action, Stop)
                overdue = job.deadline_at is not None and job.deadline_at + timedelta(seconds=20) <= NOW
                assert job.state is JobState.CANCELLING or overdue


@given(worlds(), st.data())
def test_busy_names_are_left_alone(world: tuple[list[Job], list[Observed]], data: st.DataObject) -> None:
    known, seen = world
    actions = plan(known, seen, NOW, rules=RULES)
    busy = data.draw(st.sets(st.sampled_from(sorted({named(one) for one in actions}) or ["none"])))
    for action in plan(known, seen, NOW, busy=busy, rules=RULES):
        # A queued job that is cancelled has no sandbox that anybody could be busy with.
        queued = isinstance(action, Mark) and action.reason == "cancelled before it started"
        assert named(action) not in busy or queued


@given(worlds())
def test_no_two_actions_concern_one_sandbox(world: tuple[list[Job], list[Observed]]) -> None:
    """They are applied side by side."""
    known, seen = world
    names = [named(one) for one in plan(known, seen, NOW, rules=RULES) if not isinstance(one, Mark)]
    assert len(set(names)) == len(names)


@given(worlds(), st.integers(1, 3))
def test_no_more_run_than_allowed(world: tuple[list[Job], list[Observed]], most: int) -> None:
    known, seen = world
    hosted = {job.id: job for job in known if job.spec.mode is JobMode.HOSTED}
    actions = plan(known, seen, NOW, rules=PlanRules(max_running=most))
    launched = [hosted[one.job_id] for one in actions if isinstance(one, Launch)]
    new = [job for job in launched if job.state is JobState.QUEUED]
    active = sum(1 for job in hosted.values() if job.state.active)
    assert len(new) <= max(0, most - active)


@given(worlds())
def test_in_process_jobs_are_nobody_s_business_here(world: tuple[list[Job], list[Observed]]) -> None:
    known, seen = world
    others = {job.id for job in known if job.spec.mode is JobMode.IN_PROCESS}
    actions = plan(known, seen, NOW, rules=RULES)
    assert not [one for one in actions if isinstance(one, Launch | Mark) and one.job_id in others]


class World:
    """Applies a plan's actions as the supervisor and an engine would."""

    def __init__(self, known: list[Job], seen: list[Observed]) -> None:
        self.jobs = {job.id: job for job in known}
        self.seen = {one.name: one for one in seen}
        self.now = NOW

    def step(self) -> list[Action]:
        actions = plan(self.jobs.values(), self.seen.values(), self.now, since=NOW, rules=RULES)
        for action in actions:
            self._apply(action)
        return actions

    def _apply(self, action: Action) -> None:
        match action:
            case Launch(job_id, attempt):
                job = self.jobs[job_id]
                if job.state is JobState.QUEUED:
                    job = job.moved(JobState.STARTING, attempt=attempt)
                name = sandbox_name(job_id, attempt)
                standing = self.seen.get(name)
                if standing is None or not standing.started:
                    self.seen[name] = Observed(name, "id-" + name, job_id, attempt, running=True)
                self.jobs[job_id] = replace(job, sandbox_id="id", starting_at=self.now)
            case Stop(sandbox):
                self.seen[sandbox.name] = replace(sandbox, running=False, exit_code=143)
            case Remove(sandbox):
                self._removed(sandbox)
            case Mark(job_id, attempt, state, reason, recover=left):
                job = self.jobs[job_id]
                assert job.attempt == attempt
                assert reason
                if left is not None:
                    assert left == self.seen[sandbox_name(job_id, attempt)]
                    assert not left.running
                    assert job.changes_sha256 is None
                    job = replace(job, changes_sha256="f" * 64)
                self.jobs[job_id] = job.moved(state, reason=reason, finished_at=self.now)

    def _removed(self, sandbox: Observed) -> None:
        """What a worker changed is stored before its sandbox goes."""
        assert not self.unsaved(sandbox)
        del self.seen[sandbox.name]

    def unsaved(self, sandbox: Observed) -> bool:
        job = self.jobs.get(JobId(sandbox.job_id))
        own = job is not None and sandbox.name == present_of(job) and job.spec.mode is JobMode.HOSTED
        return job is not None and own and job.working_at is not None and job.changes_sha256 is None


@given(worlds())
def test_every_world_comes_to_rest_with_every_job_ended_and_only_unsaved_changes_kept(
    world: tuple[list[Job], list[Observed]],
) -> None:
    """Silent workers, orphans, half-made launches: when nothing else happens and time passes, all end."""
    held = World(*world)
    for _ in range(60):
        held.step()
        held.now += timedelta(seconds=90)
    hosted = [job for job in held.jobs.values() if job.spec.mode is JobMode.HOSTED]
    assert all(job.state.terminal for job in hosted)
    assert all(held.unsaved(one) and not one.running for one in held.seen.values())
    assert held.step() == []


@given(worlds())
def test_foreign_and_orphan_sandboxes_go_in_two_steps(world: tuple[list[Job], list[Observed]]) -> None:
    """Everything that carries our label and that no live attempt needs: stopped, then removed."""
    _, seen = world
    held = World([], seen)
    held.step()
    assert all(not one.running for one in held.seen.values())
    held.step()
    assert not held.seen


@given(worlds())
def test_a_plan_is_the_same_however_the_world_is_listed(world: tuple[list[Job], list[Observed]]) -> None:
    known, seen = world
    there, back = plan(known, seen, NOW, rules=RULES), plan(known[::-1], seen[::-1], NOW, rules=RULES)
    assert sorted(map(str, there)) == sorted(map(str, back))

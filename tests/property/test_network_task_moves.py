"""The task table under arbitrary updates by arbitrary members."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.network.identities import Actor, AgentName, InstanceId, NetworkName, TaskId
from orchestrator.domain.network.refusals import Refusal
from orchestrator.domain.network.task_states import NEEDS_REASON, TRANSITIONS, UPDATES, TaskState
from orchestrator.domain.network.tasks import (
    MAX_ATTEMPTS,
    Target,
    Task,
    TaskChange,
    created,
    instance_ended,
    updated,
)
from tests.support.networks import START

MEMBERS = {"boss": "coder", "w1": "builder", "w2": "builder", "stranger": "painter"}

moves = st.one_of(
    st.tuples(
        st.just("update"),
        st.sampled_from(sorted(MEMBERS)),
        st.sampled_from(UPDATES),
        st.sampled_from(["", "why"]),
    ),
    st.tuples(st.just("end"), st.sampled_from(["w1", "w2"]), st.just(TaskState.FAILED), st.just("")),
)
Step = tuple[str, str, TaskState, str]


def new_task(offered_to: list[str]) -> TaskChange:
    task = Task(
        TaskId("t"), "t", "t", (), AgentName("coder"), InstanceId("boss"), "c", Target(), None,
        TaskState.PENDING, START, START,
    )  # fmt: skip
    return created(task, [InstanceId(one) for one in offered_to], "nobody")


def act(task: Task, move: Step) -> TaskChange | Refusal | None:
    kind, who, status, reason = move
    if kind == "end":
        return instance_ended(task, InstanceId(who), "gone", START)
    actor = Actor(NetworkName("n"), AgentName(MEMBERS[who]), InstanceId(who), "call")
    return updated(task, status, reason, actor, START)


@given(st.sampled_from([["w1", "w2"], ["w1"], []]), st.lists(moves, max_size=12))
def test_every_change_follows_the_table_and_the_rights(offered_to: list[str], steps: list[Step]):
    change = new_task(offered_to)
    task = change.task
    for step in steps:
        result = act(task, step)
        if not isinstance(result, TaskChange):
            continue
        after, (kind, who, status, reason) = result.task, step
        assert after.state in TRANSITIONS[task.state] | {TaskState.OFFERED}
        assert after.state is not TaskState.OFFERED or task.state is TaskState.OFFERED
        assert result.entry.state is after.state
        if kind == "update":
            assert reason or status not in NEEDS_REASON
            assert who != "stranger"
            assert who != "boss" or after.state is TaskState.CANCELLED
        if after.state is TaskState.ACCEPTED:
            assert who in task.offered_to
        # Who accepted a task holds it until it goes back to pending.
        if task.assignee_instance is not None and after.state is not TaskState.PENDING:
            assert after.assignee_instance == task.assignee_instance
        if after.state in {TaskState.PENDING, TaskState.OFFERED}:
            assert after.assignee_instance is None
        assert after.attempt <= MAX_ATTEMPTS
        assert bool(after.offered_to) is (after.state is TaskState.OFFERED)
        task = after


def test_terminal_states_are_the_three_ends():
    assert {state for state in TaskState if state.terminal} == {
        TaskState.COMPLETED,
        TaskState.FAILED,
        TaskState.CANCELLED,
    }
    assert TaskState.ACCEPTED not in TRANSITIONS[TaskState.PENDING]
    assert all(TaskState.CANCELLED in TRANSITIONS[state] for state in TaskState if not state.terminal)
    for state in (TaskState.ACCEPTED, TaskState.WORKING, TaskState.BLOCKED):
        assert TaskState.FAILED in TRANSITIONS[state]


def test_a_second_death_of_the_worker_fails_the_task():
    """BR-126: attempts are counted, and the last one's end is the task's."""
    first = new_task(["w1"]).task
    for attempt, expected in enumerate([TaskState.PENDING, TaskState.FAILED], start=1):
        offered = created(first, [InstanceId("w1")], "").task
        accepted = act(offered, ("update", "w1", TaskState.ACCEPTED, ""))
        assert isinstance(accepted, TaskChange)
        assert accepted.task.attempt == attempt
        ended = act(accepted.task, ("end", "w1", TaskState.FAILED, ""))
        assert isinstance(ended, TaskChange)
        assert ended.task.state is expected
        first = ended.task

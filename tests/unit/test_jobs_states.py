"""PD-8: the states of jobs and tasks, and the page that shows them."""

from __future__ import annotations

from itertools import pairwise

import pytest

from orchestrator.domain.jobs import TRANSITIONS, IllegalTransition, JobState
from tests.support.jobs import make_job
from tests.support.states_page import PAGE, render


def test_the_states_page_shows_the_tables_as_they_are() -> None:
    assert PAGE.read_text() == render(), "run: python -m tests.support.states_page"


@pytest.mark.parametrize("present", JobState)
def test_a_job_moves_as_the_table_says_and_no_other_way(present: JobState) -> None:
    for wanted in JobState:
        job = make_job(state=present)
        if wanted in TRANSITIONS[present]:
            assert job.moved(wanted).state is wanted
        else:
            with pytest.raises(IllegalTransition, match=f"{present} can't become {wanted}"):
                job.moved(wanted)


def test_every_state_can_be_reached_and_every_live_one_left() -> None:
    reached = {JobState.QUEUED}
    for _ in pairwise(JobState):
        reached |= {after for state in reached for after in TRANSITIONS[state]}
    assert reached == set(JobState)
    assert {state for state in JobState if state.terminal} == {
        JobState.COMPLETED,
        JobState.FAILED,
        JobState.CANCELLED,
        JobState.TIMED_OUT,
        JobState.LOST,
    }


def test_a_live_job_can_always_be_cancelled_and_ended_from_outside() -> None:
    for state in JobState:
        if state.active:
            assert {JobState.CANCELLED, JobState.FAILED, JobState.LOST} <= TRANSITIONS[state]

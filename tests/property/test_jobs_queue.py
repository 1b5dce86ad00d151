"""PD-8: which queued jobs start, whatever waits and runs."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.jobs import Job, JobId, JobSpec, JobState
from orchestrator.domain.queue import next_jobs

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
networks = st.lists(st.sampled_from("abc"), max_size=12)


def _jobs(names: list[str], state: JobState) -> list[Job]:
    return [
        Job(
            id=JobId(f"{state}-{number:02}"),
            spec=JobSpec("t", "t", network=name),
            state=state,
            created_at=NOW + timedelta(seconds=number // 2),
            instance_id=f"i-{number}",
        )
        for number, name in enumerate(names)
    ]


@given(networks, networks, st.integers(1, 8), st.integers(1, 4))
def test_the_bounds_hold_and_no_place_stays_empty(
    waiting: list[str], running: list[str], most: int, most_per_network: int
) -> None:
    queued, active = _jobs(waiting, JobState.QUEUED), _jobs(running, JobState.RUNNING)
    chosen = next_jobs(reversed(queued), active, most=most, most_per_network=most_per_network)
    before = Counter(running)
    after = before + Counter(job.spec.network for job in chosen)
    assert len({job.id for job in chosen}) == len(chosen)
    assert not chosen or after.total() <= most
    assert all(after[name] <= max(most_per_network, before[name]) for name in after)
    left = [job for job in queued if job not in chosen]
    if after.total() < most:
        assert all(after[job.spec.network] >= most_per_network for job in left)
    for name in set(waiting):  # the oldest of each network
        own = [job for job in queued if job.spec.network == name]
        assert [job for job in own if job in chosen] == own[: after[name] - before[name]]


@given(networks, networks, st.integers(1, 8))
def test_a_network_is_not_served_twice_while_one_with_less_waits(
    waiting: list[str], running: list[str], most: int
) -> None:
    queued, active = _jobs(waiting, JobState.QUEUED), _jobs(running, JobState.RUNNING)
    chosen = next_jobs(queued, active, most=most, most_per_network=most)
    under_way, left = Counter(running), Counter(waiting)
    for job in chosen:
        network = job.spec.network
        assert under_way[network] == min(under_way[name] for name in left if left[name])
        under_way[network] += 1
        left[network] -= 1

"""Which queued jobs start next: fair between networks, the oldest first within one."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from datetime import datetime

from orchestrator.domain.jobs import Job


def next_jobs(queued: Iterable[Job], active: Iterable[Job], *, most: int, most_per_network: int) -> list[Job]:
    """The jobs that may start now, in the order in which they start.

    The network with the fewest jobs under way comes first, so that one which queues hundreds delays no other.

    Args:
        queued: jobs that wait.
        active: jobs under way; they count.
        most: how many may be under way together.
        most_per_network: how many of one network.
    """
    under_way = Counter(job.spec.network for job in active)
    waiting: defaultdict[str, deque[Job]] = defaultdict(deque)
    for job in sorted(queued, key=_age):
        waiting[job.spec.network].append(job)
    chosen: list[Job] = []
    while under_way.total() < most:
        ready = [name for name, jobs in waiting.items() if jobs and under_way[name] < most_per_network]
        if not ready:
            break
        network = min(ready, key=lambda name: (under_way[name], _age(waiting[name][0])))
        under_way[network] += 1
        chosen.append(waiting[network].popleft())
    return chosen


def _age(job: Job) -> tuple[datetime, str]:
    return job.created_at, job.id

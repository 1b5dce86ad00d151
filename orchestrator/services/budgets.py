"""What jobs spend on their models: checked before each request, written down after each answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

from orchestrator.domain.budgets import UnderWay, exhausted
from orchestrator.domain.jobs import Job, JobId
from orchestrator.errors import BudgetExhausted
from orchestrator.ports.jobs import JobStore


class Budgets:
    """Holds every job to its token and iteration budget, whoever in its container asks.

    Answered requests count, and those that were left in the middle; those that failed do not. The count is
    stored with the job: it survives a restart.
    """

    def __init__(self, jobs: JobStore) -> None:
        self._jobs = jobs
        self._under_way: dict[JobId, UnderWay] = {}

    @asynccontextmanager
    async def request(self, job: Job, *, estimate_tokens: int) -> AsyncGenerator[Charge]:
        """One model request: let through or refused; charge its answer inside of the context.

        Args:
            job: whose request it is.
            estimate_tokens: of its input; held against requests that are sent beside it.

        Raises:
            BudgetExhausted: nothing of it may be sent.
        """
        present = await self._jobs.get(job.id) or job
        before = self._under_way.get(job.id, UnderWay())
        reason = exhausted(present, before)
        if reason is not None:
            raise BudgetExhausted(reason)
        self._add(job.id, 1, estimate_tokens)
        try:
            yield Charge(self._jobs, job.id)
        finally:
            self._add(job.id, -1, -estimate_tokens)

    def _add(self, job_id: JobId, requests: int, tokens: int) -> None:
        held = self._under_way.get(job_id, UnderWay())
        now = UnderWay(held.requests + requests, held.tokens + tokens)
        if now.requests:
            self._under_way[job_id] = now
        else:
            self._under_way.pop(job_id, None)


class Charge:
    """Where a request's answer is charged."""

    def __init__(self, jobs: JobStore, job_id: JobId) -> None:
        self._jobs = jobs
        self._job_id = job_id

    async def answered(self, tokens: int) -> None:
        """Charge an answer: input and output tokens together."""

        def charged(current: Job) -> Job:
            return replace(
                current,
                model_requests=current.model_requests + 1,
                tokens_used=current.tokens_used + max(tokens, 0),
            )

        await self._jobs.update(self._job_id, charged)

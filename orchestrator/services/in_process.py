"""Jobs without a container: started, watched, ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from orchestrator.domain.jobs import Job, JobId, JobMode, JobState
from orchestrator.ports.errors import StoreError
from orchestrator.ports.membership import Membership
from orchestrator.services.jobs import JobParts
from orchestrator.services.tokens import TokenService
from tool_registry.errors import PortsideError

_log = structlog.get_logger(__name__)
_LIVE = frozenset({JobState.STARTING, JobState.RUNNING, JobState.CANCELLING})
_STOPPED = "the orchestrator that ran it was stopped"
_MAX_JOBS = 10_000
_AGAIN_S = 2.0

RunInProcess = Callable[[Job, str], Awaitable[object]]


class InProcessJobs:
    """Runs queued in-process jobs, each in a task of its own.

    Args:
        run: runs one job with its token to its report.
    """

    def __init__(
        self, parts: JobParts, *, tokens: TokenService, membership: Membership, run: RunInProcess
    ) -> None:
        self._parts = parts
        self._tokens = tokens
        self._membership = membership
        self._run = run
        self._tasks: dict[JobId, asyncio.Task[None]] = {}
        self._hint = asyncio.Event()
        self._loop_task: asyncio.Task[None] | None = None
        self._closing = False

    def wake(self) -> None:
        """Something may have changed: look soon."""
        self._hint.set()

    async def start(self) -> None:
        """Fail what an earlier run left, then look after new jobs until `close`."""
        for job in await self._parts.store.list(states=_LIVE, limit=_MAX_JOBS):
            if job.spec.mode is JobMode.IN_PROCESS:
                await self._end(job, JobState.LOST, _STOPPED)
        self._loop_task = asyncio.get_running_loop().create_task(self._look_after())

    async def close(self) -> None:
        """Stop every job; they end as lost."""
        self._closing = True
        tasks = [*self._tasks.values(), *([self._loop_task] if self._loop_task else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _look_after(self) -> None:
        while True:
            self._hint.clear()
            wait_s = None
            try:
                await self._look()
            except StoreError as error:
                _log.warning("store_unreachable", reason=str(error))
                wait_s = _AGAIN_S
            try:
                async with asyncio.timeout(wait_s):
                    await self._hint.wait()
            except TimeoutError:
                continue

    async def _look(self) -> None:
        states = {JobState.QUEUED, JobState.CANCELLING}
        for job in await self._parts.store.list(states=states, limit=_MAX_JOBS):
            if job.spec.mode is not JobMode.IN_PROCESS:
                continue
            task = self._tasks.get(job.id)
            if job.state is JobState.QUEUED and task is None:
                self._tasks[job.id] = asyncio.ensure_future(self._one(job))
            elif job.state is JobState.CANCELLING and task is not None:
                task.cancel()

    async def _one(self, job: Job) -> None:
        try:
            started = await self._begin(job)
            if started is None:
                return
            token = self._tokens.issue(started, started.attempt)
            await self._run(started, token.token)
            await self._end(started, JobState.FAILED, "it ended without a report")
        except asyncio.CancelledError:
            reason = _STOPPED if self._closing else "it was stopped"
            await asyncio.shield(self._end(job, JobState.LOST, reason))
            raise
        except PortsideError as error:
            await self._end(job, JobState.FAILED, error.message)
        except Exception:  # noqa: BLE001 - a bug in one job must not end the others
            _log.exception("in_process_job_broke", job_id=job.id)
            await self._end(job, JobState.FAILED, "something broke inside; the log has it")
        finally:
            self._tasks.pop(job.id, None)

    async def _begin(self, job: Job) -> Job | None:
        now = self._parts.clock.now()
        started = await self._parts.store.update(
            job.id,
            lambda current: (
                current.moved(JobState.STARTING, attempt=1, starting_at=now)
                if current.state is JobState.QUEUED
                else None
            ),
        )
        if started is not None:
            self._parts.active.put(started)
        return started

    async def _end(self, job: Job, state: JobState, reason: str) -> None:
        """End a job that did not end itself."""
        now = self._parts.clock.now()

        def ended(current: Job) -> Job | None:
            if current.state.terminal:
                return None
            to = JobState.CANCELLED if current.state is JobState.CANCELLING else state
            return current.moved(to, reason=current.reason or reason, finished_at=now)

        changed = await self._parts.store.update(job.id, ended)
        self._parts.active.drop(job.id)
        if changed is not None:
            await self._membership.leave(changed.instance_id, changed.reason)
            await self._parts.timeline.note(
                changed.id, "status", state=changed.state, message=changed.reason, iteration=None
            )

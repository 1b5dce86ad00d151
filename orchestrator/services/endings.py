"""The ends of jobs whose workers did not report: with what they left, its reason and its last words."""

from __future__ import annotations

from container.engine.errors import EngineError
from container.engine.port import SandboxEngine
from container.engine.sandbox import SandboxRef
from orchestrator.domain.jobs import IllegalTransition, Job, JobMode, JobState
from orchestrator.domain.plan import Mark, Observed
from orchestrator.ports.membership import Membership
from orchestrator.services.jobs import JobParts
from orchestrator.services.recovery import Recovered, Recovery, with_recovered

_LOG_TAIL_BYTES = 4096
_MAX_JOBS = 10_000


class Endings:
    """Ends jobs as the plan decided."""

    def __init__(
        self, parts: JobParts, *, engine: SandboxEngine, recovery: Recovery, membership: Membership
    ) -> None:
        self._parts = parts
        self._engine = engine
        self._recovery = recovery
        self._membership = membership

    async def end(self, action: Mark) -> None:
        """End one job, unless it moved on since the plan was made.

        Raises:
            EngineUnavailable, StoreError: nothing has changed; try again later.
        """
        recovered = await self._recovered(action)
        now = self._parts.clock.now()
        reason = "; ".join(part for part in (action.reason, recovered.note) if part)

        def marked(current: Job) -> Job | None:
            if current.attempt != action.attempt or current.state.terminal:
                return None
            try:
                ended = current.moved(action.state, reason=reason, finished_at=now)
            except IllegalTransition:
                return None  # it moved on since the plan was made; the next plan sees it as it is
            return with_recovered(ended, recovered)

        # Before the end: whoever follows the job stops when it has ended.
        tail = await self._log_tail(action.sandbox) if action.sandbox else ""
        if tail:
            await self._parts.timeline.note(action.job_id, "log", level="error", text=tail)
        changed = await self._parts.store.update(action.job_id, marked)
        if changed is None:
            return
        self._parts.active.drop(changed.id)
        await self._membership.leave(changed.instance_id, reason)
        await self._told(changed, reason)

    async def fail_queued(self, reason: str) -> None:
        """Jobs that wait for an engine that stays away fail with that reason."""
        now = self._parts.clock.now()

        def failed(current: Job) -> Job | None:
            if current.state is not JobState.QUEUED:
                return None
            return current.moved(JobState.FAILED, reason=reason, finished_at=now)

        for job in await self._parts.store.list(states={JobState.QUEUED}, limit=_MAX_JOBS):
            if job.spec.mode is not JobMode.HOSTED:
                continue
            changed = await self._parts.store.update(job.id, failed)
            if changed is not None:
                await self._told(changed, reason)

    async def _recovered(self, action: Mark) -> Recovered:
        """What the worker left, before the job ends: with the end its sandbox may go."""
        sandbox = action.recover
        job = await self._parts.store.get(action.job_id) if sandbox else None
        if sandbox is None or job is None:
            return Recovered(None)
        return await self._recovery.recover(job, SandboxRef(sandbox.name, sandbox.id))

    async def _log_tail(self, sandbox: Observed) -> str:
        try:
            ref = SandboxRef(sandbox.name, sandbox.id)
            return await self._engine.logs(ref, tail_bytes=_LOG_TAIL_BYTES)
        except EngineError:
            return ""  # the sandbox is gone; the reason says so

    async def _told(self, job: Job, reason: str) -> None:
        await self._parts.timeline.note(job.id, "status", state=job.state, message=reason, iteration=None)

"""Keeps jobs and sandboxes in step: looks, lets `plan` decide, applies.

It looks whenever something may have changed - a job, an engine event, a restart - and every few seconds
besides, since every hint can be lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import datetime

import structlog

from container.engine.errors import EngineError
from container.engine.port import SandboxEngine
from container.engine.sandbox import SandboxRef, SandboxState, SandboxStatus
from orchestrator.domain.jobs import Job, JobId, JobMode, JobState
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
from orchestrator.ports.errors import StoreError
from orchestrator.ports.membership import Membership
from orchestrator.ports.sockets import JobSockets
from orchestrator.services.egress import Egress
from orchestrator.services.endings import Endings
from orchestrator.services.jobs import JobParts
from orchestrator.services.launching import LABEL_ATTEMPT, LABEL_INSTANCE, LABEL_JOB, Launcher
from orchestrator.services.recovery import Recovery

_log = structlog.get_logger(__name__)
_LIVE = frozenset({JobState.QUEUED, JobState.STARTING, JobState.RUNNING, JobState.CANCELLING})
_ALIVE = frozenset({SandboxState.RUNNING, SandboxState.PAUSED})
_SOON_S = 0.25
_DOWN_S = 3.0
_CLOSE_GRACE_S = 10.0
_LAST_EXITS_S = 5.0
_POLL_S = 0.1
_MAX_JOBS = 10_000


@dataclass(frozen=True, slots=True)
class SupervisorSettings:
    """How the supervisor behaves.

    Attributes:
        instance: only sandboxes with this label are ever touched.
        period_s: between two looks when nothing hints at a change.
    """

    instance: str
    rules: PlanRules = PlanRules()
    period_s: float = 2.0
    stop_grace_s: float = 20.0


class Supervisor:
    """One loop that owns the lifecycle of every sandbox of this orchestrator."""

    def __init__(
        self,
        parts: JobParts,
        *,
        engine: SandboxEngine,
        launcher: Launcher,
        recovery: Recovery,
        sockets: JobSockets,
        membership: Membership,
        egress: Egress,
        settings: SupervisorSettings,
    ) -> None:
        self._parts = parts
        self._engine = engine
        self._launcher = launcher
        self._recovery = recovery
        self._sockets = sockets
        self._endings = Endings(parts, engine=engine, recovery=recovery, membership=membership)
        self._egress = egress
        self._settings = settings
        self._hint = asyncio.Event()
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._launching: set[str] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._engine_error = ""
        self._down_since: float | None = None
        self._since: datetime | None = None
        self._swept = False

    def wake(self) -> None:
        """Something may have changed: look soon."""
        self._hint.set()

    @property
    def engine_error(self) -> str:
        """Why the engine can't be reached; empty while it answers."""
        return self._engine_error

    async def start(self) -> None:
        """Listen again for the jobs of an earlier run, then look after everything until `close`."""
        live = await self._parts.store.list(states=_LIVE - {JobState.QUEUED}, limit=_MAX_JOBS)
        hosted = [job.id for job in live if job.spec.mode is JobMode.HOSTED]
        await self._recovery.start()
        await self._egress.start()
        for job_id in hosted:
            await self._sockets.open(job_id, None)
        self._since = self._parts.clock.now()
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._watch_engine()), loop.create_task(self._run())]

    async def close(self) -> None:
        """Take away what has ended, and leave running jobs alone: a later run adopts them."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for name in self._launching & self._busy.keys():
            self._busy[name].cancel()  # a launch that is cut off is finished by the next run
        await self._settle()
        await self._take_away_ended()

    async def _take_away_ended(self) -> None:
        """Remove the sandboxes of ended jobs, whose workers are about to exit."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + min(self._settings.stop_grace_s, _LAST_EXITS_S)
        while True:
            leaving = await self._look(final=True)
            removing = bool(self._busy)
            await self._settle()
            if not (leaving or removing) or loop.time() >= deadline:
                return
            await asyncio.sleep(_POLL_S)

    async def _settle(self) -> None:
        """Let what is under way end; what takes longer than any stop is found again by the next run."""
        tasks = set(self._busy.values())
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=self._settings.stop_grace_s + _CLOSE_GRACE_S)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            self._hint.clear()
            try:
                await self._look()
            except Exception:  # noqa: BLE001 - whatever broke, the next look is the only way to recover
                _log.exception("look_broke")
            try:
                async with asyncio.timeout(self._settings.period_s):
                    await self._hint.wait()
            except TimeoutError:
                continue

    async def _watch_engine(self) -> None:
        async for _event in self._engine.events():
            self.wake()

    async def _look(self, *, final: bool = False) -> bool:
        """See how things are and begin what is to be done; a final look only removes.

        Returns:
            Whether a worker that has reported is about to exit.
        """
        # What is under way at any time during the look is left alone: it may be half seen.
        busy = set(self._busy)
        try:
            observed = await self._observe()
            if observed is None:
                return False
            jobs = await self._jobs(observed)
            busy |= set(self._busy)
            now = self._parts.clock.now()
            rules = self._settings.rules
            for action in plan(jobs, observed, now, since=self._since, busy=busy, rules=rules):
                if not final or isinstance(action, Remove):
                    self._begin(action)
            self._egress.keep(jobs)
            await self._close_sockets(jobs, observed)
        except StoreError as error:
            _log.warning("store_unreachable", reason=str(error))
            return False
        reported = {job.id for job in jobs if job.reported}
        return any(sandbox.running and sandbox.job_id in reported for sandbox in observed)

    async def _observe(self) -> list[Observed] | None:
        """Every sandbox of ours; None while the engine does not answer."""
        monotonic = self._parts.clock.monotonic()
        try:
            statuses = await self._engine.list({LABEL_INSTANCE: self._settings.instance})
        except EngineError as error:
            self._engine_error = error.message
            _log.warning("engine_unreachable", reason=error.message)
            if self._down_since is None:
                self._down_since = monotonic
            if self._parts.clock.monotonic() - self._down_since >= _DOWN_S:
                await self._endings.fail_queued(error.message)
            return None
        self._engine_error = ""
        self._down_since = None
        return [_observed(status) for status in statuses]

    async def _close_sockets(self, jobs: list[Job], observed: list[Observed]) -> None:
        """Stop listening for jobs that have ended and left no sandbox.

        An engine gives nothing out of a sandbox whose directory is gone, so the first look that sees all
        sandboxes removes what earlier runs left.
        """
        needed = {job.id for job in jobs if not job.state.terminal} | {one.job_id for one in observed}
        for job_id in set(self._sockets.job_ids()) - needed:
            await self._sockets.close(job_id)
        if not self._swept:
            await self._sockets.remove_others(needed)
            self._swept = True

    async def _jobs(self, observed: list[Observed]) -> list[Job]:
        """Every live job, and every job an observed sandbox belongs to."""
        jobs = {job.id: job for job in await self._parts.store.list(states=_LIVE, limit=_MAX_JOBS)}
        for sandbox in observed:
            job_id = JobId(sandbox.job_id)
            if job_id and job_id not in jobs:
                job = await self._parts.store.get(job_id)
                if job is not None:
                    jobs[job_id] = job
        return list(jobs.values())

    def _begin(self, action: Action) -> None:
        match action:
            case Launch(job_id, attempt):
                name = sandbox_name(job_id, attempt)
                self._launching.add(name)
                self._occupy(name, self._launcher.launch(action))
            case Stop(sandbox, why):
                self._occupy(sandbox.name, self._stop(sandbox, why))
            case Remove(sandbox):
                self._occupy(sandbox.name, self._remove(sandbox))
            case Mark(job_id, attempt):
                self._occupy(sandbox_name(job_id, attempt), self._endings.end(action))

    def _occupy(self, name: str, work: Coroutine[None, None, None]) -> None:
        """Do one thing to a sandbox; nothing else is done to it meanwhile."""
        if name in self._busy:
            work.close()
            return
        task = asyncio.ensure_future(self._guarded(name, work))
        self._busy[name] = task
        task.add_done_callback(lambda _: self._release(name))

    def _release(self, name: str) -> None:
        self._busy.pop(name, None)
        self._launching.discard(name)
        self.wake()

    async def _guarded(self, name: str, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        except (EngineError, StoreError) as error:
            # It stays as it is and is looked at again; the next plan starts from what is there then.
            _log.warning("sandbox_action_failed", sandbox=name, reason=str(error))
            await asyncio.sleep(_SOON_S)
        except Exception:  # noqa: BLE001 - a bug in one job's care must not end the care of all others
            _log.exception("sandbox_action_broke", sandbox=name)
            await asyncio.sleep(_SOON_S)

    async def _stop(self, sandbox: Observed, why: str) -> None:
        _log.info("sandbox_stopping", sandbox=sandbox.name, why=why)
        await self._engine.stop(SandboxRef(sandbox.name, sandbox.id), self._settings.stop_grace_s)

    async def _remove(self, sandbox: Observed) -> None:
        await self._engine.remove(SandboxRef(sandbox.name, sandbox.id))


def _observed(status: SandboxStatus) -> Observed:
    attempt = status.labels.get(LABEL_ATTEMPT, "0")
    return Observed(
        name=status.ref.name,
        id=status.ref.id,
        job_id=status.labels.get(LABEL_JOB, ""),
        attempt=int(attempt) if attempt.isdecimal() else 0,
        running=status.state in _ALIVE,
        started=status.state is not SandboxState.CREATED,
        exit_code=status.exit_code,
        out_of_memory=status.ran_out_of_memory,
        ended_at=status.finished_at,
        error=status.error,
    )

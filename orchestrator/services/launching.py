"""From a job to its sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

import structlog

from container.engine.errors import EngineError
from container.engine.port import SandboxEngine
from container.engine.sandbox import Limits, SandboxRef, SandboxSpec, WorkerStart
from orchestrator.domain.jobs import Job, JobId, JobState
from orchestrator.domain.plan import Launch, sandbox_name
from orchestrator.ports.errors import StoreError
from orchestrator.ports.sockets import JobSockets
from orchestrator.services.egress import Egress
from orchestrator.services.jobs import JobParts
from orchestrator.services.tokens import TokenService
from tool_registry.errors import PortsideError

_log = structlog.get_logger(__name__)
LABEL_INSTANCE = "io.portside.instance"
LABEL_JOB = "io.portside.job"
LABEL_ATTEMPT = "io.portside.attempt"
_DEADLINE_GRACE_S = 30.0
_LOOK_AGAIN_S = 2.0


@dataclass(frozen=True, slots=True)
class LaunchSettings:
    """What every sandbox of this orchestrator has in common.

    Attributes:
        instance: names this orchestrator; its sandboxes carry it as a label.
        start_in: answers how the worker is started in an image, made ready if need be; empty names that
            of jobs that name none.
    """

    instance: str
    start_in: Callable[[str], Awaitable[WorkerStart]]
    stop_grace_s: float = 20.0


class Launcher:
    """Makes the sandbox of a job's attempt; looks for a cancellation after every step."""

    def __init__(
        self,
        parts: JobParts,
        *,
        engine: SandboxEngine,
        tokens: TokenService,
        sockets: JobSockets,
        egress: Egress,
        settings: LaunchSettings,
    ) -> None:
        self._parts = parts
        self._engine = engine
        self._tokens = tokens
        self._sockets = sockets
        self._egress = egress
        self._settings = settings

    async def launch(self, action: Launch) -> None:
        """Start the attempt. What goes wrong becomes the job's reason.

        Raises:
            StoreError: the database does not answer; the attempt is launched again later.
        """
        job = await self._begin(action)
        if job is None:
            return
        try:
            await self._note_attempt(job)
            ref = await self._start(job)
        except StoreError:
            raise
        except (EngineError, PortsideError) as error:
            await self._fail(job, error.message)
        except OSError as error:
            await self._fail(job, f"its socket or image can't be made ready: {error.strerror or error}")
        except Exception:  # noqa: BLE001 - a bug must not launch the same job for ever
            _log.exception("launch_broke", job_id=job.id)
            await self._fail(job, "something broke inside while it was started; the log has it")
        else:
            if ref is not None:
                await self._note_sandbox(job, ref)

    async def _begin(self, action: Launch) -> Job | None:
        """Take the attempt: `starting`, with its number."""
        now = self._parts.clock.now()

        def starting(current: Job) -> Job | None:
            if current.state is JobState.QUEUED and current.cancel_requested_at is None:
                return current.moved(
                    JobState.STARTING, attempt=action.attempt, starting_at=now, sandbox_id=None
                )
            return (
                current if current.state is JobState.STARTING and current.attempt == action.attempt else None
            )

        job = await self._parts.store.update(action.job_id, starting)
        if job is not None:
            self._parts.active.put(job)
        return job

    async def _note_attempt(self, job: Job) -> None:
        """Say which attempt it is, and which limits its sandbox will not have."""
        unenforced = (await self._engine.describe()).unenforced
        missing = [f"{limit} is not enforced: {why}" for limit, why in unenforced.items()]
        said = "; ".join([f"attempt {job.attempt}", *missing])
        await self._parts.timeline.note(job.id, "status", state=job.state, message=said, iteration=None)

    async def _start(self, job: Job) -> SandboxRef | None:
        start = await self._ready_start(job)
        if start is None or await self._cancelled(job.id):
            return None
        await self._egress.admit(job)
        token = self._tokens.issue(job, job.attempt)
        directory = await self._sockets.open(job.id, token.token)
        if await self._cancelled(job.id):
            return None
        return await self._engine.launch(self._spec(job, start, directory))

    async def _ready_start(self, job: Job) -> WorkerStart | None:
        """The job's image, there to be started in; None when the job was cancelled meanwhile.

        A build or pull takes minutes. It goes on when its job is cancelled: others wait for it too.
        """
        preparing = asyncio.ensure_future(self._prepare(job))
        try:
            while not preparing.done():
                watch = self._parts.timeline.watch(job.id)
                if await self._cancelled(job.id):
                    preparing.add_done_callback(_forget)
                    return None
                changed = asyncio.ensure_future(watch.changed(_LOOK_AGAIN_S))
                await asyncio.wait({preparing, changed}, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
        except asyncio.CancelledError:
            preparing.cancel()
            raise
        return preparing.result()

    async def _prepare(self, job: Job) -> WorkerStart:
        start = await self._settings.start_in(job.spec.image)
        await self._engine.prepare(start.image)
        return start

    def _spec(self, job: Job, start: WorkerStart, directory: Path) -> SandboxSpec:
        return SandboxSpec(
            name=sandbox_name(job.id, job.attempt),
            image=start.image,
            command=(*start.python, "-m", "worker"),
            labels={
                LABEL_INSTANCE: self._settings.instance,
                LABEL_JOB: job.id,
                LABEL_ATTEMPT: str(job.attempt),
            },
            socket_dir=directory,
            deadline_s=job.spec.timeout_s + _DEADLINE_GRACE_S,
            env={**start.env, "PORTSIDE_JOB_ID": job.id, "PORTSIDE_ATTEMPT": str(job.attempt)},
            kit=start.kit,
            limits=_limits(job),
            stop_grace_s=self._settings.stop_grace_s,
        )

    async def _cancelled(self, job_id: JobId) -> bool:
        job = await self._parts.store.get(job_id)
        return job is None or job.state is not JobState.STARTING

    async def _note_sandbox(self, job: Job, ref: SandboxRef) -> None:
        """Remember the engine's id; a job that was cancelled meanwhile is found by its label.

        The worker's time to register begins here: making the image ready was not its fault.
        """
        now = self._parts.clock.now()

        def launched(current: Job) -> Job | None:
            if current.attempt != job.attempt or current.state.terminal:
                return None
            return replace(current, sandbox_id=ref.id, starting_at=now)

        await self._parts.store.update(job.id, launched)
        self._parts.active.drop(job.id)

    async def _fail(self, job: Job, reason: str) -> None:
        now = self._parts.clock.now()

        def failed(current: Job) -> Job | None:
            if current.attempt != job.attempt or current.state is not JobState.STARTING:
                return None
            return current.moved(JobState.FAILED, reason=reason, finished_at=now)

        changed = await self._parts.store.update(job.id, failed)
        self._parts.active.drop(job.id)
        if changed is not None:
            await self._parts.timeline.note(
                job.id, "status", state=changed.state, message=reason, iteration=None
            )


def _forget(preparing: asyncio.Task[WorkerStart]) -> None:
    """Whoever needs the image next meets the same error."""
    if not preparing.cancelled():
        preparing.exception()


def _limits(job: Job) -> Limits:
    limits = Limits()
    explicit: set[str] = set()
    if job.spec.memory_bytes is not None:
        limits = replace(limits, memory_bytes=job.spec.memory_bytes)
        explicit.add("memory_bytes")
    if job.spec.cpus is not None:
        limits = replace(limits, cpus=job.spec.cpus)
        explicit.add("cpus")
    return replace(limits, explicit=frozenset(explicit))

"""Jobs as their workers see them: registered, described, reported on, completed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from orchestrator.domain.jobs import Job, JobMode, JobState
from orchestrator.errors import ChangesMissing, Conflict, JobNotActive, TooLarge
from orchestrator.ports.blobs import Blob, BlobTooLarge
from orchestrator.ports.deliveries import PendingDelivery
from orchestrator.ports.events import NewEvent, StoredEvent
from orchestrator.ports.membership import Membership, NotTaken
from orchestrator.ports.sockets import JobSockets
from orchestrator.services.active_jobs import may_call
from orchestrator.services.jobs import JobParts
from orchestrator.services.secrets import SecretService
from tool_registry.audit import AuditRecord, AuditSink, SchemaVerdict
from tool_registry.redaction import masked
from tool_registry.registry import ToolRegistry

MAX_CHANGES_BYTES = 256 * 1024 * 1024
MAX_WAIT_S = 25.0
_LOOK_AGAIN_S = 5.0
DEADLINE = "deadline"


@dataclass(frozen=True, slots=True)
class Completion:
    """How a worker says that its job ended; `reason` is `deadline` when time ran out."""

    outcome: str
    reason: str | None
    message: str | None
    iterations: int
    result: Any


class WorkerReports:
    """What a worker asks and tells.

    Args:
        audit: told of calls that the worker could not send.
        wake: called after a change that the supervisor should look at.
    """

    def __init__(
        self,
        parts: JobParts,
        *,
        membership: Membership,
        secrets: SecretService,
        sockets: JobSockets,
        registry: ToolRegistry,
        audit: AuditSink,
        wake: Callable[[], None],
    ) -> None:
        self._parts = parts
        self._membership = membership
        self._secrets = secrets
        self._sockets = sockets
        self._registry = registry
        self._audit = audit
        self._wake = wake

    async def register(self, job: Job) -> Job:
        """The worker has come: the first call makes the job `running` and takes the token file away.

        Raises:
            JobNotActive: it was cancelled or has ended; or its agent is gone, and it ends now.
        """
        self._sockets.remove_token(job.id)
        now = self._parts.clock.now()

        def registered(current: Job) -> Job | None:
            if current.attempt != job.attempt or current.state is not JobState.STARTING:
                return None
            deadline = now + timedelta(seconds=current.spec.timeout_s)
            return current.moved(JobState.RUNNING, registered_at=now, deadline_at=deadline)

        changed = await self._parts.store.update(job.id, registered)
        present = changed or await self._registered(job)
        self._parts.active.put(present)
        # Also when it registered before: the run that wrote it down may have been killed right after.
        try:
            await self._membership.join(job.spec.network, job.spec.agent, job.instance_id, job.id)
        except NotTaken as error:
            await self._fail(job, error.message)
            raise JobNotActive(f"{error.message}; its worker stops") from None
        await self._membership.heartbeat(job.instance_id)
        if changed is not None:
            await self._parts.timeline.note(
                job.id, "status", state=changed.state, message="the worker has registered", iteration=0
            )
        return present

    async def _fail(self, job: Job, reason: str) -> None:
        now = self._parts.clock.now()

        def failed(current: Job) -> Job | None:
            if current.attempt != job.attempt or current.state.terminal:
                return None
            return current.moved(JobState.FAILED, reason=reason, finished_at=now)

        changed = await self._parts.store.update(job.id, failed)
        if changed is None:
            return
        self._parts.active.drop(job.id)
        await self._membership.leave(job.instance_id, reason)
        await self._parts.timeline.note(job.id, "status", state=changed.state, message=reason, iteration=None)
        self._wake()

    async def _registered(self, job: Job) -> Job:
        """The job as it stands, when this attempt's worker has registered before."""
        current = await self._parts.store.get(job.id)
        if current is None or not may_call(current, job.attempt) or current.registered_at is None:
            raise JobNotActive("the job was cancelled or has ended; its worker stops")
        return current

    def workspace(self, job: Job) -> AsyncIterator[bytes] | None:
        """The starting workspace's tar; None when it is empty."""
        sha256 = job.spec.workspace_sha256
        return None if sha256 is None else self._parts.blobs.open(sha256)

    async def credentials(self, job: Job) -> list[tuple[str, str]]:
        """The granted secrets as (environment variable, value); audited as an event, without values."""
        granted = await self._secrets.granted(job.spec.secrets)
        if granted:
            names = ", ".join(sorted(job.spec.secrets))
            await self._parts.timeline.note(
                job.id, "log", level="info", text=f"credentials handed out: {names}"
            )
        return granted

    async def store_changes(self, job: Job, chunks: AsyncIterator[bytes]) -> Blob:
        """Keep the worker's patch as the job's result; a later one replaces it.

        Raises:
            TooLarge: more than 256 MiB.
        """
        try:
            blob = await self._parts.blobs.put(chunks, limit_bytes=MAX_CHANGES_BYTES)
        except BlobTooLarge as error:
            raise TooLarge(f"the patch has more than {error.limit_bytes:,} bytes") from None

        def stored(current: Job) -> Job | None:
            if current.attempt != job.attempt:
                return None
            return replace(current, changes_sha256=blob.sha256, changes_bytes=blob.size_bytes)

        changed = await self._parts.store.update(job.id, stored)
        if changed is None:
            raise JobNotActive("another attempt of this job has taken over")
        self._parts.active.put(changed)
        return blob

    async def events(self, job: Job, events: Sequence[NewEvent]) -> None:
        """Store the worker's events, sensitive arguments masked; those it sent before are left out."""
        stored = await self._parts.timeline.append(job.id, [self._completed(event) for event in events])
        for event in stored:
            if event.type == "tool_result" and event.data["unsent"]:
                self._record_unsent(job, event)

    def _record_unsent(self, job: Job, event: StoredEvent) -> None:
        """Keep the verdict of a call whose arguments were no JSON object: it never came as a call."""
        data = event.data
        entry = self._registry.get(data["tool_name"])
        if entry is None:
            return  # one of the container's own tools
        self._audit(
            AuditRecord(
                at=event.at,
                job_id=job.id,
                agent=job.spec.agent,
                network=job.spec.network,
                tool_name=entry.name,
                source=str(entry.traits.source),
                call_id=f"{job.attempt}:{data['call_id']}",
                params={},
                verdict=data["verdict"],
                schema_verdict=SchemaVerdict.VIOLATES.value,
                violations=tuple(data["errors"]),
                adjustments=(),
                duration_ms=data["duration_ms"],
                output_bytes=0,
            )
        )

    def _completed(self, event: NewEvent) -> NewEvent:
        """With what only the registry knows of a tool: its source and its sensitive arguments."""
        entry = self._registry.get(event.data["tool_name"]) if event.type == "tool_use" else None
        if entry is None:
            return event
        params = masked(event.data["params"], entry.traits.sensitive)
        return replace(event, data={**event.data, "params": params, "source": entry.traits.source})

    async def status(self, job: Job, state: str, message: str | None, iteration: int) -> None:
        """Where the worker stands; it is heard of, and what it says is in the timeline."""
        await self._membership.heartbeat(job.instance_id)
        if state == "running" and job.working_at is None:
            await self._begun(job)
        if message is not None:
            text = f"{state}: {message}"
            await self._parts.timeline.note(
                job.id, "status", state=job.state, message=text, iteration=iteration
            )

    async def _begun(self, job: Job) -> None:
        """The workspace is in place: what differs from the start from now on is the job's doing."""
        now = self._parts.clock.now()

        def begun(current: Job) -> Job | None:
            if current.attempt != job.attempt or current.working_at is not None:
                return None
            return replace(current, working_at=now)

        changed = await self._parts.store.update(job.id, begun)
        if changed is not None:
            self._parts.active.put(changed)

    async def deliveries(self, job: Job, *, wait_s: float, acks: Collection[str]) -> list[PendingDelivery]:
        """What waits for the job; waits for something up to 25 s. Comes again until acknowledged."""
        parts = self._parts
        await self._membership.heartbeat(job.instance_id)
        if acks:
            await parts.deliveries.acknowledge(job.id, acks)
            await self._membership.acknowledge_pushed(job.instance_id, acks)
        deadline = parts.clock.monotonic() + min(max(wait_s, 0.0), MAX_WAIT_S)
        while True:
            watch = parts.timeline.watch(job.id)
            pending = await parts.deliveries.pending(job.id)
            pending += await self._pushed(job)
            left_s = deadline - parts.clock.monotonic()
            if pending or left_s <= 0 or parts.timeline.closed:
                return pending
            # Another process that serves the same network can't wake this one.
            await watch.changed(min(left_s, _LOOK_AGAIN_S))

    async def _pushed(self, job: Job) -> list[PendingDelivery]:
        """What the network has for the job's model."""
        return [
            PendingDelivery(one.id, job.id, one.kind, one.text, one.created_at, one.thread_id, one.task_id)
            for one in await self._membership.pushed(job.instance_id)
        ]

    async def complete(self, job: Job, report: Completion) -> None:
        """The worker's last word. The first report wins; the same again is fine.

        Raises:
            ChangesMissing: a hosted job has to upload its changes first.
            Conflict: another report came before, or none can come yet.
            JobNotActive: the job ended without this report.
        """
        now = self._parts.clock.now()

        def completed(current: Job) -> Job | None:
            if current.attempt != job.attempt or current.state.terminal or current.reported:
                return None
            if current.registered_at is None:
                raise Conflict("GET job comes before complete: the job has not begun")
            if current.spec.mode is JobMode.HOSTED and current.changes_sha256 is None:
                raise ChangesMissing("PUT workspace/changes comes before complete; an empty patch will do")
            words = {
                "message": report.message,
                "iterations": report.iterations,
                "result": _stored(report),
                "reason": current.reason or _reason(report),
            }
            if current.state is JobState.CANCELLING and report.outcome != "completed":
                return replace(current, **words)  # it stays so until the engine says that nothing runs
            return current.moved(_state(report), finished_at=now, **words)

        changed = await self._parts.store.update(job.id, completed)
        if changed is None:
            await self._repeated(job, report)
            return
        self._parts.active.drop(job.id)
        if changed.state.terminal:
            await self._membership.leave(job.instance_id, f"job {changed.state}")
        await self._parts.timeline.note(
            job.id, "status", state=changed.state, message=changed.reason or None, iteration=report.iterations
        )
        self._wake()

    async def _repeated(self, job: Job, report: Completion) -> None:
        current = await self._parts.store.get(job.id)
        if current is None or not current.reported:
            raise JobNotActive("the job has ended without this report; its worker stops")
        stored = (current.result, current.message, current.iterations)
        if stored != (_stored(report), report.message, report.iterations):
            raise Conflict("this job was completed with another report; the first one stands")


def _stored(report: Completion) -> dict[str, Any]:
    return {"outcome": report.outcome, "reason": report.reason, "value": report.result}


def _reason(report: Completion) -> str:
    if report.outcome == "completed":
        return ""
    if report.outcome == "limit":
        return f"limit reached: {report.reason or 'not named'}"
    return report.reason or report.outcome


def _state(report: Completion) -> JobState:
    if report.outcome == "limit":
        return JobState.TIMED_OUT if (report.reason or "").startswith(DEADLINE) else JobState.FAILED
    return {"completed": JobState.COMPLETED, "cancelled": JobState.CANCELLED}.get(
        report.outcome, JobState.FAILED
    )

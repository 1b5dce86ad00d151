"""Jobs as users see them: accepted, watched, prompted, cancelled, removed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass, replace

from orchestrator.domain.jobs import Job, JobId, JobMode, JobSpec, JobState
from orchestrator.domain.network.names import normal_name
from orchestrator.domain.network.refusals import Refusal
from orchestrator.errors import BadRequest, Conflict, NotFound, TooLarge
from orchestrator.ports.blobs import Blob, BlobStore, BlobTooLarge
from orchestrator.ports.deliveries import DeliveryStore, PendingDelivery
from orchestrator.ports.ids import Ids
from orchestrator.ports.jobs import JobStore
from orchestrator.ports.membership import Membership
from orchestrator.ports.models import ModelError, ModelProvider
from orchestrator.services.active_jobs import ActiveJobs
from orchestrator.services.egress import Egress
from orchestrator.services.secrets import SecretService
from orchestrator.services.timeline import Timeline
from tool_registry.clock import Clock

MAX_WORKSPACE_BYTES = 1024**3
MAX_TIMEOUT_S = 86_400.0


@dataclass(frozen=True, slots=True)
class JobParts:
    """What the job services share."""

    store: JobStore
    active: ActiveJobs
    blobs: BlobStore
    deliveries: DeliveryStore
    timeline: Timeline
    clock: Clock
    ids: Ids


class JobService:
    """What an operator does with jobs.

    Args:
        wake: called after a change that the supervisor should look at.
        models: asked whether they can answer a job, before it is accepted.
        secrets: asked whether they can be granted.
        egress: asked whether hosts can be allowed.
        membership: told of agents that a job is the first to name.
    """

    def __init__(
        self,
        parts: JobParts,
        wake: Callable[[], None],
        *,
        models: ModelProvider,
        secrets: SecretService,
        egress: Egress,
        membership: Membership,
    ) -> None:
        self._parts = parts
        self._wake = wake
        self._models = models
        self._secrets = secrets
        self._egress = egress
        self._membership = membership

    async def upload_workspace(self, chunks: AsyncIterator[bytes]) -> Blob:
        """Store a workspace's tar, to be named in a job by its sha256.

        Raises:
            TooLarge: more than 1 GiB.
        """
        try:
            return await self._parts.blobs.put(chunks, limit_bytes=MAX_WORKSPACE_BYTES)
        except BlobTooLarge as error:
            raise TooLarge(
                f"the workspace has more than {error.limit_bytes:,} bytes; leave large files out (.gitignore)"
            ) from None

    async def create(self, spec: JobSpec, *, job_id: str | None = None, new_agent: bool = False) -> Job:
        """Accept a job; it starts when there is room.

        Args:
            spec: what is asked for.
            job_id: its id, when that was decided before; a new one else.
            new_agent: its agent comes to be with it, unless it is there. Later nobody makes it: a job whose
                agent was removed before it started fails.

        Raises:
            AlreadyExists: there is a job of this id.
            BadRequest: the message says which part can't be, and why.
            EgressUnavailable: it allows hosts, and nothing here could carry a connection.
        """
        await self._check(spec)
        spec = replace(spec, allow_hosts=self._egress.allowed(spec.allow_hosts, spec.mode))
        if spec.workspace_sha256 is not None:
            size = await self._parts.blobs.size(spec.workspace_sha256)
            if size is None:
                raise BadRequest("there is no workspace of this sha256; upload it first")
            spec = replace(spec, workspace_bytes=size)
        if new_agent:
            await self._membership.expect(spec.network, spec.agent)
        parts = self._parts
        job = Job(
            id=JobId(job_id or parts.ids.new()),
            spec=spec,
            state=JobState.QUEUED,
            created_at=parts.clock.now(),
            instance_id=parts.ids.new(),
        )
        await parts.store.add(job)
        await parts.timeline.note(job.id, "status", state=job.state, message=None, iteration=None)
        self._wake()
        return job

    async def _check(self, spec: JobSpec) -> None:
        if not spec.task.strip():
            raise BadRequest("the task is empty; say what the job should do")
        for what, name in (("agent", spec.agent), ("network", spec.network)):
            refused = normal_name(name)
            if isinstance(refused, Refusal):
                raise BadRequest(f"the {what}: {refused.message}")
        if spec.mode is JobMode.IN_PROCESS and spec.secrets:
            raise BadRequest("an in-process job runs no commands that could be given secrets")
        await self._secrets.check(spec.secrets)
        if not 0 < spec.timeout_s <= MAX_TIMEOUT_S:
            raise BadRequest(f"the timeout must be between 1 and {MAX_TIMEOUT_S:g} seconds")
        if spec.mode is JobMode.IN_PROCESS and spec.workspace_sha256 is not None:
            raise BadRequest("an in-process job has no container and takes no workspace")
        if spec.command is not None:
            _check_command(spec)
        self._check_model(spec)

    def _check_model(self, spec: JobSpec) -> None:
        if not spec.model:
            if spec.command is not None:
                return  # it may need none; whoever asks for one is told that there is none
            raise BadRequest("no model is named; write openai:MODEL, anthropic:MODEL or scripted:PATH")
        try:
            self._models.check(spec.model)
        except ModelError as error:
            raise BadRequest(error.message) from None

    async def get(self, job_id: str) -> Job:
        """One job.

        Raises:
            NotFound: there is none of this id.
        """
        job = await self._parts.store.get(JobId(job_id))
        if job is None:
            raise NotFound(f"there is no job {job_id[:80]!r}")
        return job

    async def find(self, job_id: str) -> Job | None:
        """One job; None when there is none."""
        return await self._parts.store.get(JobId(job_id))

    async def ended(self, job_id: str) -> bool:
        """Whether it has ended; a job that was removed has."""
        job = await self._parts.store.get(JobId(job_id))
        return job is None or job.state.terminal

    async def list(self, *, states: Collection[JobState] | None = None, limit: int = 100) -> list[Job]:
        """Jobs, newest first."""
        return await self._parts.store.list(states=states, limit=limit)

    async def cancel(self, job_id: str, reason: str = "cancelled by the operator") -> Job:
        """Ask a job to end. It is `cancelling` until nothing of it runs; asking again changes nothing."""
        job = await self.get(job_id)
        now = self._parts.clock.now()

        def cancelled(current: Job) -> Job | None:
            if current.state.terminal or current.cancel_requested_at is not None:
                return None
            if current.state is JobState.QUEUED:
                return current.moved(
                    JobState.CANCELLED, cancel_requested_at=now, finished_at=now, reason=reason
                )
            return current.moved(JobState.CANCELLING, cancel_requested_at=now, reason=reason)

        changed = await self._parts.store.update(job.id, cancelled)
        if changed is None:
            return await self.get(job_id)
        self._parts.active.drop(job.id)
        await self._parts.timeline.note(job.id, "status", state=changed.state, message=reason, iteration=None)
        await self._deliver(job.id, "cancel", reason)
        self._wake()
        return changed

    async def prompt(self, job_id: str, text: str) -> None:
        """Say something to a running job; its loop sees it before the next model request.

        Raises:
            Conflict: the job has ended, or its agent is a command, which hears nothing.
            BadRequest: there is nothing to say.
        """
        job = await self.get(job_id)
        if job.state.terminal:
            raise Conflict(f"the job is {job.state}; start a new one")
        if job.spec.command is not None:
            raise Conflict("this job runs a command, which takes no prompts; cancel it and start another")
        if not text.strip():
            raise BadRequest("the prompt is empty")
        await self._deliver(job.id, "prompt", text)

    async def _deliver(self, job_id: JobId, kind: str, text: str) -> None:
        parts = self._parts
        delivery = PendingDelivery(parts.ids.new(), job_id, kind, text, parts.clock.now())
        await parts.deliveries.add(delivery)
        parts.timeline.wake(job_id)

    def changes(self, job: Job) -> AsyncIterator[bytes]:
        """The job's patch, as `git apply` takes it.

        Raises:
            NotFound: it uploaded none.
        """
        if job.changes_sha256 is None:
            raise NotFound("this job has not uploaded its changes")
        return self._parts.blobs.open(job.changes_sha256)

    def start(self, job: Job, *, offset: int = 0, limit: int | None = None) -> AsyncIterator[bytes]:
        """The workspace's tar that the job began with, or a part of it.

        Raises:
            NotFound: it began with nothing.
        """
        if job.spec.workspace_sha256 is None:
            raise NotFound("this job began with an empty workspace")
        return self._parts.blobs.open(job.spec.workspace_sha256, offset=offset, limit=limit)

    async def remove(self, job_id: str) -> None:
        """Forget a job that has ended.

        Raises:
            Conflict: it is still at work.
        """
        job = await self.get(job_id)
        if not job.state.terminal:
            raise Conflict(f"the job is {job.state}; cancel it first")
        await self._parts.store.delete(job.id)
        self._parts.active.drop(job.id)
        self._wake()


def _check_command(spec: JobSpec) -> None:
    if spec.mode is JobMode.IN_PROCESS:
        raise BadRequest("an in-process job has no container to run a command in")
    if spec.command is None or not spec.command.strip() or "\0" in spec.command:
        raise BadRequest("the command is empty, or holds a NUL")

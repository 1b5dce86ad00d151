"""The changes of a job whose worker is gone: taken from its container, compared in one of their own."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

import structlog
from anyio.to_thread import run_sync

from container.engine.errors import EngineError, EngineUnavailable
from container.engine.port import SandboxEngine
from container.engine.sandbox import SandboxRef, WorkerStart
from orchestrator.domain.jobs import Job
from orchestrator.domain.plan import sandbox_name
from orchestrator.ports.blobs import Blob, BlobStore, BlobTooLarge
from orchestrator.ports.errors import StoreUnavailable
from orchestrator.services.launching import LABEL_ATTEMPT, LABEL_INSTANCE, LABEL_JOB
from orchestrator.services.left_files import LeftBounds, NotRecoverable, bring_out
from orchestrator.services.reports import MAX_CHANGES_BYTES
from orchestrator.services.sealed_programs import Program, SealedPrograms, write
from orchestrator.services.timeline import Timeline

_log = structlog.get_logger(__name__)
MODULE = "worker.recovery"
PATCH = "changes.patch"
_WORKSPACE = "/workspace"
_AT_ONCE = 2
_NAMED = 20
_CHUNK_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class RecoverySettings:
    """How changes are recovered.

    Attributes:
        instance: names this orchestrator; its sandboxes carry it as a label.
        start_in: answers how Python with the worker is started in an image; empty names the default one.
        folder: where archives lie for a moment; what an earlier run left there is removed.
    """

    instance: str
    start_in: Callable[[str], Awaitable[WorkerStart]]
    folder: Path
    bounds: LeftBounds | None = None


@dataclass(frozen=True, slots=True)
class Recovered:
    """What came of it.

    Attributes:
        patch: where it is stored; None when there is none.
        note: for the job's reason; empty when nothing had changed.
    """

    patch: Blob | None
    note: str = ""


class Recovery:
    """Makes the patch that a worker did not make.

    Doing it twice gives the same patch under the same name, so a crash at any step costs nothing but time.
    """

    def __init__(
        self, blobs: BlobStore, timeline: Timeline, *, engine: SandboxEngine, settings: RecoverySettings
    ) -> None:
        self._blobs = blobs
        self._timeline = timeline
        self._engine = engine
        self._programs = SealedPrograms(engine, settings.start_in)
        self._settings = settings
        self._turn = asyncio.Semaphore(_AT_ONCE)

    async def start(self) -> None:
        """Remove what an earlier run left."""
        await run_sync(lambda: shutil.rmtree(self._settings.folder, ignore_errors=True))

    async def recover(self, job: Job, ref: SandboxRef) -> Recovered:
        """The patch from the job's start to what is in its stopped sandbox.

        Raises:
            EngineUnavailable, StoreUnavailable: nothing is lost; try again later.
        """
        async with self._turn, self._folder() as folder:
            try:
                return await self._recover(job, ref, folder)
            except EngineUnavailable:
                raise
            except (EngineError, NotRecoverable, BlobTooLarge) as error:
                _log.warning("changes_not_recovered", job_id=job.id, reason=str(error))
                return Recovered(None, _kept(job, ref, error))
            except OSError as error:
                raise StoreUnavailable(
                    f"there is no room for what job {job.id} left: {error.strerror}"
                ) from error

    async def _recover(self, job: Job, ref: SandboxRef, folder: Path) -> Recovered:
        left = await bring_out(
            self._engine.collect(ref, _WORKSPACE), folder / "left.tar", self._settings.bounds
        )
        await run_sync((folder / "left-out.json").write_text, json.dumps(left.left_out))
        if job.spec.workspace_sha256 is not None:
            try:
                await write(self._blobs.open(job.spec.workspace_sha256), folder / "start.tar")
            except KeyError:
                raise NotRecoverable("the workspace that it began with is not stored any more") from None
        async with self._programs.run(self._comparison(job, folder)) as (comparing, said):
            await self._programs.fetch(comparing, PATCH, folder / PATCH, most=MAX_CHANGES_BYTES)
        with await run_sync((folder / PATCH).open, "rb") as file:
            patch = await self._blobs.put(_chunks(file), limit_bytes=MAX_CHANGES_BYTES)
        await self._tell(job, left.left_out, said)
        return Recovered(patch, "its changes were recovered" if patch.size_bytes else "")

    def _comparison(self, job: Job, folder: Path) -> Program:
        """It carries its job's labels: one that a killed orchestrator leaves goes when the job has ended."""
        return Program(
            name=f"{sandbox_name(job.id, job.attempt)}-changes-{uuid4().hex[:8]}",
            module=MODULE,
            labels={
                LABEL_INSTANCE: self._settings.instance,
                LABEL_JOB: job.id,
                LABEL_ATTEMPT: str(job.attempt),
            },
            given=folder,
        )

    async def _tell(self, job: Job, left_out: list[str], said: dict[str, Any]) -> None:
        lines = {
            "files that are too large to be recovered": left_out,
            "new files that ignore rules keep out of the diff": said["ignored"],
            "not in the diff": [said["unreadable"]] if said["unreadable"] else [],
        }
        for what, names in lines.items():
            if names:
                text = f"{what}: {', '.join(names[:_NAMED])}"
                await self._timeline.note(job.id, "log", level="info", text=text)

    @asynccontextmanager
    async def _folder(self) -> AsyncGenerator[Path]:
        """A directory that a sandbox can read; its parent is closed to other users of this machine."""
        try:
            folder = await run_sync(_make_folder, self._settings.folder)
        except OSError as error:
            raise StoreUnavailable(f"{self._settings.folder} can't be written: {error.strerror}") from error
        try:
            yield folder
        finally:
            await run_sync(lambda: shutil.rmtree(folder, ignore_errors=True))


def _kept(job: Job, ref: SandboxRef, error: Exception) -> str:
    return (
        f"its changes could not be recovered: {error}. They stay in the container {ref.name}, under"
        f" {_WORKSPACE}, until you type: portside jobs rm {job.id}"
    )


def with_recovered(job: Job, recovered: Recovered) -> Job:
    """The job with its recovered patch, unless its worker's own came first."""
    if recovered.patch is None or job.changes_sha256 is not None:
        return job
    return replace(job, changes_sha256=recovered.patch.sha256, changes_bytes=recovered.patch.size_bytes)


def _make_folder(parent: Path) -> Path:
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    parent.chmod(0o700)
    folder = Path(tempfile.mkdtemp(dir=parent))
    folder.chmod(0o755)
    return folder


async def _chunks(file: IO[bytes]) -> AsyncIterator[bytes]:
    while chunk := await run_sync(file.read, _CHUNK_BYTES):
        yield chunk

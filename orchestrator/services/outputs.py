"""Large outputs, kept whole for their job."""

from __future__ import annotations

from collections.abc import AsyncIterator

from orchestrator.domain.jobs import JobId
from orchestrator.errors import NotFound
from orchestrator.ports.artifacts import Artifact, ArtifactStore
from orchestrator.ports.blobs import BlobStore
from orchestrator.ports.ids import Ids
from tool_registry.clock import Clock
from tool_registry.context import ToolContext

_LIMIT_BYTES = 256 * 1024 * 1024


class Outputs:
    """An `OutputKeeper` over blobs, and the way back to what it kept."""

    def __init__(self, blobs: BlobStore, artifacts: ArtifactStore, clock: Clock, ids: Ids) -> None:
        self._blobs = blobs
        self._artifacts = artifacts
        self._clock = clock
        self._ids = ids

    async def keep(self, context: ToolContext, data: bytes, media_type: str) -> str:
        """Store bytes for the calling job; answers the artifact's id."""
        blob = await self._blobs.put(_once(data), limit_bytes=_LIMIT_BYTES)
        artifact = Artifact(
            id=self._ids.new(),
            job_id=JobId(context.job_id),
            sha256=blob.sha256,
            size_bytes=blob.size_bytes,
            media_type=media_type,
            created_at=self._clock.now(),
        )
        await self._artifacts.add(artifact)
        return artifact.id

    async def find(self, job_id: str, artifact_id: str) -> Artifact:
        """A job's own artifact.

        Raises:
            NotFound: it has none of this id.
        """
        artifact = await self._artifacts.get(JobId(job_id), artifact_id)
        if artifact is None:
            raise NotFound(f"this job has no artifact {artifact_id[:80]!r}")
        return artifact

    def read(self, artifact: Artifact, *, offset: int = 0, limit: int | None = None) -> AsyncIterator[bytes]:
        """Its bytes."""
        return self._blobs.open(artifact.sha256, offset=offset, limit=limit)


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data

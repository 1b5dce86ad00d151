"""Which large outputs belong to which job."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from orchestrator.domain.jobs import JobId


@dataclass(frozen=True, slots=True)
class Artifact:
    """A large output that was kept whole.

    Attributes:
        id: unique within everything.
        media_type: of the bytes, such as `text/plain; charset=utf-8`.
    """

    id: str
    job_id: JobId
    sha256: str
    size_bytes: int
    media_type: str
    created_at: datetime


class ArtifactStore(Protocol):
    """The index from artifact ids to blobs."""

    async def add(self, artifact: Artifact) -> None:
        """Store it."""
        ...

    async def get(self, job_id: JobId, artifact_id: str) -> Artifact | None:
        """A job's artifact; another job's does not exist."""
        ...

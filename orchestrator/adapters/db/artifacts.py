"""`ArtifactStore` over SQL."""

from __future__ import annotations

from sqlalchemy import Connection, insert, select

from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.rows import columns_of, row_of
from orchestrator.adapters.db.tables import artifacts
from orchestrator.domain.jobs import JobId
from orchestrator.ports.artifacts import Artifact

_COLUMNS = columns_of(artifacts, Artifact)


class SqlArtifactStore:
    """The index from artifact ids to blobs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, artifact: Artifact) -> None:
        """Store it.

        Raises:
            AlreadyExists: an artifact of this id is there.
            OwnerMissing: there is no such job.
        """
        statement = insert(artifacts).values(**row_of(artifact))
        await self._database.write(lambda connection: connection.execute(statement))

    async def get(self, job_id: JobId, artifact_id: str) -> Artifact | None:
        """A job's artifact; another job's does not exist."""
        query = select(*_COLUMNS).where(artifacts.c.id == artifact_id, artifacts.c.job_id == job_id)

        def work(connection: Connection) -> Artifact | None:
            row = connection.execute(query).one_or_none()
            return None if row is None else Artifact(*row)

        return await self._database.read(work)

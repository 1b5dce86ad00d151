"""What every `ArtifactStore` does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.adapters.db.artifacts import SqlArtifactStore
from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.jobs import SqlJobStore
from orchestrator.domain.jobs import JobId
from orchestrator.ports.artifacts import Artifact, ArtifactStore
from orchestrator.ports.errors import AlreadyExists, OwnerMissing
from tests.support.jobs import START, make_job

JOB = JobId("job-1")
ARTIFACT = Artifact("a1", JOB, "ab" * 32, 2**40, "text/plain; charset=utf-8", START)


@pytest.fixture
async def artifacts(database: Database) -> ArtifactStore:
    await SqlJobStore(database).add(make_job("job-1"))
    return SqlArtifactStore(database)


async def test_an_artifact_comes_back_as_it_was_stored(artifacts: ArtifactStore):
    await artifacts.add(ARTIFACT)
    assert await artifacts.get(JOB, "a1") == ARTIFACT


async def test_another_jobs_artifact_does_not_exist(artifacts: ArtifactStore):
    """BR-120: knowing an id is not enough."""
    await artifacts.add(ARTIFACT)
    assert await artifacts.get(JobId("job-2"), "a1") is None
    assert await artifacts.get(JOB, "a2") is None
    assert await artifacts.get(JOB, "a1\x00") is None


async def test_an_id_is_stored_once(artifacts: ArtifactStore):
    await artifacts.add(ARTIFACT)
    with pytest.raises(AlreadyExists):
        await artifacts.add(replace(ARTIFACT, size_bytes=1))
    assert await artifacts.get(JOB, "a1") == ARTIFACT


async def test_nothing_is_kept_for_a_job_that_is_not_there(artifacts: ArtifactStore):
    with pytest.raises(OwnerMissing):
        await artifacts.add(replace(ARTIFACT, job_id=JobId("gone")))


async def test_artifacts_go_with_their_job(artifacts: ArtifactStore, database: Database):
    await artifacts.add(ARTIFACT)
    await SqlJobStore(database).delete(JOB)
    assert await artifacts.get(JOB, "a1") is None

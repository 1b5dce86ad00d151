"""Artifacts: references to finished work that lies elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from orchestrator.domain.network.identities import AgentName, ArtifactId, InstanceId, TaskId
from orchestrator.domain.network.refusals import Refusal

ARTIFACT_TYPES = ("pull_request", "commit", "package", "test_report", "document", "file", "json", "other")


@dataclass(frozen=True, slots=True)
class NetworkArtifact:
    """A published reference.

    Attributes:
        type: one of `ARTIFACT_TYPES`, or the publisher's own word.
        call_id: the publishing call; one call makes one artifact.
    """

    id: ArtifactId
    uri: str
    type: str
    label: str
    task_id: TaskId | None
    agent: AgentName
    instance_id: InstanceId
    call_id: str
    created_at: datetime


def artifact_uri(text: str) -> str | Refusal:
    """A reference as it is kept: without outer blanks."""
    uri = text.strip()
    if uri and uri.isprintable():
        return uri
    return Refusal(
        "invalid_uri", "uri must be one line of printable characters that says where the artifact is"
    )

"""What the loop needs from the orchestrator, and how it gets it over HTTP.

The in-process path implements the same port inside the orchestrator; everything above it is the same code
in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from worker.protocol.events import EventBatch
from worker.protocol.job import Delivery, StatusReport
from worker.protocol.llm import (
    CompleteAnswer,
    CompleteRequest,
    CompleteWithToolsAnswer,
    CompleteWithToolsRequest,
)
from worker.protocol.tools import Catalog, ExecuteAnswer, ExecuteRequest


class Transport(Protocol):
    """A running job's line to the orchestrator. `worker.client.WorkerClient` is the HTTP one.

    Refusals are `tool_registry.errors.RemoteProblem`s with the code of the wire; other failures are
    `PortsideError`s. A model that fails raises code `model_error`; `cause` is `context_overflow` when the
    conversation was too long for it.
    """

    async def complete_with_tools(self, request: CompleteWithToolsRequest) -> CompleteWithToolsAnswer:
        """Ask the job's model for its next step."""
        ...

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        """Ask the job's model for text."""
        ...

    async def catalog(self, known_version: str | None) -> Catalog | None:
        """The hosted-visible tools; None when they are still those of `known_version`."""
        ...

    async def execute(self, request: ExecuteRequest, *, key: str, timeout_s: float) -> ExecuteAnswer:
        """Run one remote tool call; the same `key` again is the same call."""
        ...

    async def artifact(self, artifact_id: str, offset: int, limit: int) -> bytes:
        """A part of an artifact of this job; empty past its end."""
        ...

    async def deliveries(self, ack: Sequence[str], wait_s: float) -> Sequence[Delivery]:
        """Acknowledge deliveries, then wait up to `wait_s` for those not acknowledged."""
        ...

    async def events(self, batch: EventBatch) -> None:
        """Store events; a `seq` stored before is ignored."""
        ...

    async def status(self, report: StatusReport) -> None:
        """Say where the worker stands."""
        ...

"""An orchestrator in memory, for the loop: what the in-process path is to the hosted one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from tool_registry.errors import PortsideError
from worker.protocol.events import EventBatch, WorkerEvent
from worker.protocol.job import Delivery, StatusReport
from worker.protocol.llm import (
    CompleteAnswer,
    CompleteRequest,
    CompleteWithToolsAnswer,
    CompleteWithToolsRequest,
    Message,
    Usage,
    WireToolCall,
)
from worker.protocol.tools import (
    Catalog,
    ExecuteAnswer,
    ExecuteRequest,
    ToolPolicy,
    WireToolDefinition,
    WireToolOutput,
)

Answers = CompleteWithToolsAnswer | PortsideError
Model = Callable[[CompleteWithToolsRequest], Answers | Awaitable[Answers]]


def says(text: str, finish_reason: Any = "stop", tokens: int = 0) -> CompleteWithToolsAnswer:
    """An answer in words."""
    usage = Usage(input_tokens=tokens)
    return CompleteWithToolsAnswer(content=text, finish_reason=finish_reason, usage=usage)


def calls(
    *made: tuple[str, str, str], text: str = "", finish_reason: Any = "tool_calls"
) -> CompleteWithToolsAnswer:
    """An answer that calls tools: `(id, name, arguments as text)`."""
    wire = [WireToolCall(id=i, name=n, arguments=a) for i, n, a in made]
    return CompleteWithToolsAnswer(content=text, finish_reason=finish_reason, tool_calls=wire)


def finishes(summary: str = "done") -> CompleteWithToolsAnswer:
    """An answer that ends the job well."""
    return calls(("end", "finish", f'{{"success": true, "summary": "{summary}"}}'))


class MemoryTransport:
    """`worker.transport.Transport` over a scripted model; it keeps what it was sent.

    Attributes:
        model: answers each request; after the last scripted answer the job is finished.
        remote: runs remote calls.
    """

    def __init__(self, *answers: Answers) -> None:
        self._answers = iter(answers)
        self.model: Model = self._next
        self.summaries: list[CompleteRequest] = []
        self.summarise: Callable[[CompleteRequest], CompleteAnswer] = lambda _request: CompleteAnswer(
            content="what happened so far", finish_reason="stop"
        )
        self.requests: list[CompleteWithToolsRequest] = []
        self.tools: list[WireToolDefinition] = []
        self.instructions: list[str] = []
        self.policies: dict[str, ToolPolicy] = {}
        self.version = "sha256:1"
        self.catalog_error: PortsideError | None = None
        self.remote: Callable[[ExecuteRequest], Awaitable[WireToolOutput]] = _nothing
        self.executed: list[tuple[str, ExecuteRequest, float]] = []
        self.artifacts: dict[str, bytes] = {}
        self.stored: list[WorkerEvent] = []
        self.statuses: list[StatusReport] = []
        self.pending: list[Delivery] = []
        self.acknowledged: list[str] = []

    def _next(self, _request: CompleteWithToolsRequest) -> Answers:
        return next(self._answers, None) or finishes()

    async def events(self, batch: EventBatch) -> None:
        known = {event.seq for event in self.stored}
        self.stored.extend(event for event in batch.events if event.seq not in known)

    def data(self, kind: str) -> list[Any]:
        """The data of stored events of one type."""
        return [event.data for event in self.stored if event.type == kind]

    def logs(self) -> str:
        """The job's log as one text."""
        return "\n".join(data.text for data in self.data("log"))

    async def complete_with_tools(self, request: CompleteWithToolsRequest) -> CompleteWithToolsAnswer:
        self.requests.append(request)
        answer = self.model(request)
        if isinstance(answer, Awaitable):
            answer = await answer
        if isinstance(answer, PortsideError):
            raise answer
        return answer

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        self.summaries.append(request)
        return self.summarise(request)

    async def catalog(self, known_version: str | None) -> Catalog | None:
        if self.catalog_error is not None:
            raise self.catalog_error
        if known_version == self.version:
            return None
        return Catalog(
            tools=self.tools,
            toolset_instructions=self.instructions,
            policies=self.policies,
            catalog_version=self.version,
        )

    async def execute(self, request: ExecuteRequest, *, key: str, timeout_s: float) -> ExecuteAnswer:
        self.executed.append((key, request, timeout_s))
        return ExecuteAnswer(output=await self.remote(request), catalog_version=self.version)

    async def artifact(self, artifact_id: str, offset: int, limit: int) -> bytes:
        return self.artifacts[artifact_id][offset : offset + limit]

    async def deliveries(self, ack: Sequence[str], wait_s: float) -> Sequence[Delivery]:
        self.acknowledged.extend(ack)
        self.pending = [one for one in self.pending if one.delivery_id not in ack]
        if not self.pending and wait_s:
            await asyncio.sleep(0.01)
        return list(self.pending)

    async def status(self, report: StatusReport) -> None:
        self.statuses.append(report)


async def _nothing(_request: ExecuteRequest) -> WireToolOutput:
    return WireToolOutput(result="ran")


def results_of(request: CompleteWithToolsRequest) -> list[Message]:
    """The tool results in a request, in order."""
    return [message for message in request.messages if message.role == "tool"]

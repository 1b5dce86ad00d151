"""Events of a job's timeline: one typed `data` model per type."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field

from worker.protocol.llm import Usage
from worker.protocol.model import Count, Request
from worker.protocol.problems import ProblemError
from worker.protocol.tools import WireAdjustment

# What a worker says is stored and read again: columns hold no larger number, calendars no other time.
Seq = Annotated[int, Field(ge=1, lt=2**63)]
At = Annotated[AwareDatetime, Field(ge=datetime(2000, 1, 1, tzinfo=UTC), lt=datetime(3000, 1, 1, tzinfo=UTC))]


class StatusData(Request):
    """A change of state, or a note about it."""

    state: str
    message: str | None = None
    iteration: Count | None = None


class MessageData(Request):
    """Text the model wrote, or text put before it."""

    role: Literal["assistant", "user", "system"]
    text: str
    iteration: Count
    finish_reason: str | None = None
    usage: Usage | None = None


class ToolUseData(Request):
    """A tool call, before it runs; sensitive arguments are masked."""

    call_id: str
    tool_name: str
    params: dict[str, Any]
    source: str
    iteration: Count


class ToolResultData(Request):
    """How a tool call ended; `verdict` is `ok`, `error` (the tool says so), or a problem's code.

    Attributes:
        errors: how the arguments broke the schema.
        adjustments: what was changed of the arguments before the tool ran.
        unsent: the arguments were no JSON object, so that nobody but the worker saw the call.
    """

    call_id: str
    tool_name: str
    verdict: str
    is_error: bool
    preview: str
    duration_ms: Count
    truncated: bool = False
    first_call: bool = False
    errors: list[ProblemError] = Field(default_factory=list[ProblemError], max_length=100)
    adjustments: list[WireAdjustment] = Field(default_factory=list[WireAdjustment])
    unsent: bool = False


class ResultData(Request):
    """The job's end as its worker saw it."""

    outcome: str
    reason: str | None = None
    message: str | None = None
    iterations: Count = 0
    files_changed: Count | None = None


class LogData(Request):
    """A line of the worker's own log."""

    level: Literal["debug", "info", "warning", "error"]
    text: str


class OutputData(Request):
    """A piece of what the command of a job wrote; control sequences of terminals are taken out."""

    stream: Literal["stdout", "stderr"]
    text: str


class ContractData(Request):
    """Proof that the first tool-capable model request carried the catalogue's definitions."""

    catalog_hash: str
    request_hash: str
    tools: Count
    identical: bool


class StatusEvent(Request):
    """`status`."""

    type: Literal["status"] = "status"
    seq: Seq
    at: At
    data: StatusData


class MessageEvent(Request):
    """`message`."""

    type: Literal["message"] = "message"
    seq: Seq
    at: At
    data: MessageData


class ToolUseEvent(Request):
    """`tool_use`."""

    type: Literal["tool_use"] = "tool_use"
    seq: Seq
    at: At
    data: ToolUseData


class ToolResultEvent(Request):
    """`tool_result`."""

    type: Literal["tool_result"] = "tool_result"
    seq: Seq
    at: At
    data: ToolResultData


class ResultEvent(Request):
    """`result`."""

    type: Literal["result"] = "result"
    seq: Seq
    at: At
    data: ResultData


class LogEvent(Request):
    """`log`."""

    type: Literal["log"] = "log"
    seq: Seq
    at: At
    data: LogData


class OutputEvent(Request):
    """`output`."""

    type: Literal["output"] = "output"
    seq: Seq
    at: At
    data: OutputData


class ContractEvent(Request):
    """`contract`."""

    type: Literal["contract"] = "contract"
    seq: Seq
    at: At
    data: ContractData


WorkerEvent = Annotated[
    StatusEvent
    | MessageEvent
    | ToolUseEvent
    | ToolResultEvent
    | ResultEvent
    | LogEvent
    | OutputEvent
    | ContractEvent,
    Field(discriminator="type"),
]


class EventBatch(Request):
    """Events in order; a `seq` that was stored before is ignored."""

    events: list[WorkerEvent] = Field(max_length=500)

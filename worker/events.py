"""What happens in a job, sent to its timeline in order and in batches."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, cast

from tool_registry.clock import Clock
from tool_registry.errors import PortsideError, RemoteProblem
from worker.errors import job_is_over
from worker.protocol.events import (
    ContractData,
    ContractEvent,
    EventBatch,
    LogData,
    LogEvent,
    MessageData,
    MessageEvent,
    OutputData,
    OutputEvent,
    ResultData,
    ResultEvent,
    StatusData,
    StatusEvent,
    ToolResultData,
    ToolResultEvent,
    ToolUseData,
    ToolUseEvent,
    WorkerEvent,
)
from worker.transport import Transport

EventData = (
    StatusData | MessageData | ToolUseData | ToolResultData | ResultData | LogData | OutputData | ContractData
)

PREVIEW_CHARS = 2_000
TEXT_CHARS = 40_000
_BATCH = 100
_GATHER_S = 0.1
_RETRY_S = 2.0
_MAX_WAITING = 10_000

_EVENT_OF: Mapping[type[EventData], Callable[..., WorkerEvent]] = {
    StatusData: StatusEvent,
    MessageData: MessageEvent,
    ToolUseData: ToolUseEvent,
    ToolResultData: ToolResultEvent,
    ResultData: ResultEvent,
    LogData: LogEvent,
    OutputData: OutputEvent,
    ContractData: ContractEvent,
}


class EventSink:
    """Takes events at once, and sends them when it can.

    What can't be sent waits, bounded: beyond the bound the oldest go, and the timeline says how many.
    """

    def __init__(self, transport: Transport, clock: Clock, *, max_waiting: int = _MAX_WAITING) -> None:
        self._transport = transport
        self._clock = clock
        self._waiting: deque[WorkerEvent] = deque()
        self._max_waiting = max_waiting
        self._seq = 0
        self._lost = 0
        self._wake = asyncio.Event()
        self._closed = False

    def emit(self, data: EventData) -> None:
        """Add an event."""
        if self._closed:
            return
        self._seq += 1
        self._waiting.append(_EVENT_OF[type(data)](seq=self._seq, at=self._clock.now(), data=data))
        if len(self._waiting) > self._max_waiting:
            self._waiting.popleft()
            self._lost += 1
        self._wake.set()

    def log(self, level: str, text: str) -> None:
        """Add a line of the worker's log."""
        self.emit(LogData.model_validate({"level": level, "text": shortened(text, TEXT_CHARS)}))

    def warn(self, text: str) -> None:
        """Add a warning of the worker's log."""
        self.log("warning", text)

    async def run(self) -> None:
        """Send until cancelled."""
        while True:
            await self._wake.wait()
            await asyncio.sleep(_GATHER_S)
            if not await self._send_waiting():
                await asyncio.sleep(_RETRY_S)

    async def flush(self, within_s: float) -> bool:
        """Send what waits; False when it could not be sent in time."""
        try:
            async with asyncio.timeout(within_s):
                return await self._send_waiting()
        except TimeoutError:
            return False

    async def _send_waiting(self) -> bool:
        self._wake.clear()
        while self._waiting:
            if self._lost:
                lost, self._lost = self._lost, 0
                self.log("warning", f"{lost} events could not be sent in time and are lost")
            batch = [self._waiting[i] for i in range(min(_BATCH, len(self._waiting)))]
            try:
                await self._transport.events(EventBatch(events=batch))
            except PortsideError as error:
                if job_is_over(error):
                    self._closed = True
                    self._waiting.clear()
                    return True
                if not isinstance(error, RemoteProblem) or error.retryable:
                    self._wake.set()
                    return False
                self._lost += len(batch)  # refused for good: the next batch must not wait behind it
            last = batch[-1].seq
            while self._waiting and self._waiting[0].seq <= last:
                self._waiting.popleft()
        return True


def shortened(text: str, limit: int) -> str:
    """A text of at most about `limit` characters."""
    return text if len(text) <= limit else f"{text[:limit]} [... {len(text) - limit:,} characters more]"


def preview(value: Any, limit: int = PREVIEW_CHARS) -> Any:
    """A JSON value with every long string shortened and every long list cut, for a timeline."""
    if isinstance(value, str):
        return shortened(value, limit)
    if isinstance(value, dict):
        items = list(cast("dict[str, Any]", value).items())[:50]
        return {key: preview(item, limit // 2) for key, item in items}
    if isinstance(value, list):
        return [preview(item, limit // 2) for item in cast("list[Any]", value)[:50]]
    return value

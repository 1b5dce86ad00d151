"""The tool calls of one answer: run side by side when they only read, else in order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tool_registry.arguments import parse_arguments
from tool_registry.context import ToolContext
from tool_registry.errors import CallError, InvalidParams, PortsideError
from tool_registry.output import ToolOutput
from tool_registry.redaction import Redactor
from tool_registry.registry import Entry
from worker import wording
from worker.call_events import CallEvents
from worker.errors import job_is_over
from worker.events import EventSink, preview
from worker.history import ToolResult, compact_json, storable_call
from worker.names import Resolved, resolve
from worker.protocol.llm import MediaPart, WireToolCall
from worker.stuck import Outcome
from worker.surface import ToolSurface

_MAX_PARALLEL = 8
_LOG = logging.getLogger("portside.worker")


@dataclass(slots=True)
class PlannedCall:
    """A call with a unique id, its tool, and its parsed arguments.

    Attributes:
        call: as the history keeps it.
        refusal: why it can't run, with the verdict's code; None when it can.
    """

    call: WireToolCall
    entry: Entry | None = None
    params: dict[str, Any] = field(default_factory=dict[str, Any])
    refusal: CallError | str | None = None


@dataclass(slots=True)
class Turn:
    """The calls of one answer and what came of each, by call id."""

    planned: Sequence[PlannedCall]
    results: dict[str, ToolResult] = field(default_factory=dict[str, ToolResult])
    outcomes: list[Outcome] = field(default_factory=list[Outcome])
    whole: dict[str, str] = field(default_factory=dict[str, str])

    def every_result(self) -> dict[str, ToolResult]:
        """One result per call; those that were not reached were cancelled."""
        missing = ToolResult(wording.NOT_STARTED, is_error=True)
        return {one.call.id: self.results.get(one.call.id, missing) for one in self.planned}

    @property
    def unknown_names(self) -> bool:
        """Whether no call named a tool that exists."""
        return all(one.entry is None for one in self.planned)


class CallRunner:
    """Plans and runs calls for one job."""

    def __init__(
        self, surface: ToolSurface, events: EventSink, redactor: Redactor, context: ToolContext
    ) -> None:
        """`context` is the job's; each call gets a copy with its own id."""
        self._surface = surface
        self._events = events
        self._told = CallEvents(events, redactor)
        self._context = context

    def plan(self, calls: Sequence[WireToolCall]) -> Turn:
        """Find each call's tool and parse its arguments; nothing runs yet."""
        known = self._surface.names()
        return Turn([self._planned(call, resolve(call.name, known)) for call in calls])

    async def run(self, turn: Turn, iteration: int) -> None:
        """Run a planned turn; every call that ended has its result in `turn`, also after a cancel.

        Raises:
            PortsideError: the orchestrator says that the job is over.
        """
        runnable = [one for one in turn.planned if one.entry is not None and one.refusal is None]
        side_by_side = len(runnable) > 1 and all(
            one.entry is not None and one.entry.traits.read_only for one in runnable
        )
        if not side_by_side:
            for one in turn.planned:
                await self._run_one(one, turn, iteration)
            return
        room = asyncio.Semaphore(_MAX_PARALLEL)

        async def run_in_room(one: PlannedCall) -> None:
            async with room:
                await self._run_one(one, turn, iteration)

        tasks = [asyncio.ensure_future(run_in_room(one)) for one in turn.planned]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _planned(self, call: WireToolCall, resolved: Resolved) -> PlannedCall:
        entry = self._surface.entry(resolved.name) if resolved.name else None
        if entry is None:
            return PlannedCall(storable_call(call), refusal=wording.unknown_tool(call.name, resolved.near))
        named = storable_call(call, entry.name)
        try:
            return PlannedCall(named, entry, parse_arguments(call.arguments))
        except InvalidParams as error:
            return PlannedCall(named, entry, refusal=error)

    async def _run_one(self, one: PlannedCall, turn: Turn, iteration: int) -> None:
        first = self._told.begun(one.call.id, one.call.name, one.entry, one.params, iteration)
        started = asyncio.get_running_loop().time()
        try:
            output = await self._output(one)
        except asyncio.CancelledError:
            turn.results[one.call.id] = ToolResult(wording.CANCELLED, is_error=True)
            self._report(one, "cancelled", turn.results[one.call.id].text, started, first=first)
            raise
        except CallError as error:
            self._refused(one, error, turn, started, first=first)
            if job_is_over(error):
                raise
            return
        if isinstance(output, str):
            turn.results[one.call.id] = ToolResult(output, is_error=True)
            turn.outcomes.append(Outcome(one.call.name, None, output))
            code = "tool_not_found" if one.entry is None else "internal"
            self._report(one, code, output, started, first=first)
            return
        self._take(one, output, turn, first=first)

    async def _output(self, one: PlannedCall) -> ToolOutput | str:
        """The tool's output; a text is why there is none, where no error of the registry says it."""
        if isinstance(one.refusal, str):
            return one.refusal
        if one.refusal is not None:
            raise one.refusal
        assert one.entry is not None
        context = replace(self._context, call_id=one.call.id)
        try:
            return await self._surface.execute(one.entry.name, one.params, context)
        except PortsideError:
            raise
        except Exception:  # noqa: BLE001 - any bug of a tool
            # A tool with a bug costs its call, not the job: the model hears of it, the log has the trace.
            _LOG.exception("the tool %s broke", one.entry.name)
            self._events.log("error", f"the tool {one.entry.name} broke; its log has the cause")
            return f"internal: the tool {one.entry.name} broke; this is no fault of the arguments"

    def _take(self, one: PlannedCall, output: ToolOutput, turn: Turn, *, first: bool) -> None:
        text, media = _rendered(output)
        turn.results[one.call.id] = ToolResult(text, output.is_error, media)
        waited = one.entry is not None and one.entry.traits.awaits_others
        turn.outcomes.append(Outcome(one.call.name, one.params, output.result, waited=waited))
        if output.truncated is not None and output.truncated.artifact:
            turn.whole[one.call.id] = output.truncated.artifact
        self._told.gave(one.call.id, one.call.name, output, text, first=first)

    def _refused(
        self, one: PlannedCall, error: CallError, turn: Turn, started: float, *, first: bool
    ) -> None:
        text = wording.call_error(error)
        turn.results[one.call.id] = ToolResult(text, is_error=True)
        turn.outcomes.append(Outcome(one.call.name, None, text))
        self._report(one, error.code, text, started, first=first, error=error)

    def _report(
        self,
        one: PlannedCall,
        verdict: str,
        text: str,
        started: float,
        *,
        first: bool,
        error: CallError | None = None,
    ) -> None:
        took_ms = int((asyncio.get_running_loop().time() - started) * 1000)
        self._told.failed(
            one.call.id,
            one.call.name,
            verdict,
            text,
            duration_ms=took_ms,
            first=first,
            error=error,
            unsent=isinstance(one.refusal, InvalidParams),
        )


def _rendered(output: ToolOutput) -> tuple[str, tuple[MediaPart, ...]]:
    """What the model reads: the result, which names every block, images beside it, and what was left out."""
    text, media = output.text(), list[MediaPart]()
    for block in output.content:
        data, kind = block.get("data"), str(block.get("mimeType") or block.get("media_type") or "")
        if block.get("type") == "image" and isinstance(data, str) and kind:
            media.append(MediaPart(type="image", media_type=kind, data=data))
        elif block.get("type") == "omitted":
            text += f"\n{compact_json(preview(block))}"
    return text, tuple(media)

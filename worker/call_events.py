"""What a job's timeline is told of one tool call: that it begins, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tool_registry.errors import CallError
from tool_registry.output import ToolOutput
from tool_registry.redaction import Redactor, masked
from tool_registry.registry import Entry
from worker.events import PREVIEW_CHARS, EventSink, preview, shortened
from worker.protocol.events import ToolResultData, ToolUseData
from worker.protocol.problems import ProblemError
from worker.protocol.tools import WireAdjustment


class CallEvents:
    """Writes the two events of each call; knows which tools were called before."""

    def __init__(self, events: EventSink, redactor: Redactor) -> None:
        self._events = events
        self._redactor = redactor
        self._called: set[str] = set()

    def begun(
        self, call_id: str, name: str, entry: Entry | None, params: Mapping[str, Any], iteration: int
    ) -> bool:
        """A call is about to run; answers whether it is the job's first of this tool."""
        traits = entry.traits if entry else None
        shown = masked(params, traits.sensitive) if traits else dict(params)
        self._events.emit(
            ToolUseData(
                call_id=call_id,
                tool_name=name,
                params=preview(self._redactor.value(shown)),
                source=traits.source if traits else "",
                iteration=iteration,
            )
        )
        first = name not in self._called
        self._called.add(name)
        return first

    def gave(self, call_id: str, name: str, output: ToolOutput, text: str, *, first: bool) -> None:
        """The tool ran; `text` is what its caller reads."""
        self._events.emit(
            ToolResultData(
                call_id=call_id,
                tool_name=name,
                verdict="error" if output.is_error else "ok",
                is_error=output.is_error,
                preview=shortened(text, PREVIEW_CHARS),
                duration_ms=output.duration_ms,
                truncated=output.truncated is not None,
                first_call=first,
                adjustments=[
                    WireAdjustment.model_validate(change.as_json()) for change in output.adjustments
                ],
            )
        )

    def failed(
        self,
        call_id: str,
        name: str,
        verdict: str,
        text: str,
        *,
        duration_ms: int,
        first: bool,
        error: CallError | None = None,
        unsent: bool = False,
    ) -> None:
        """The call gave no output; one that was `unsent` never left the worker."""
        found = error.violations if error else ()
        self._events.emit(
            ToolResultData(
                call_id=call_id,
                tool_name=name,
                verdict=verdict,
                is_error=True,
                preview=shortened(text, PREVIEW_CHARS),
                duration_ms=duration_ms,
                first_call=first,
                unsent=unsent,
                errors=[
                    ProblemError(
                        pointer=v.pointer, rule=v.rule, message=v.message, expected=v.expected, got=v.got
                    )
                    for v in found
                ],
            )
        )

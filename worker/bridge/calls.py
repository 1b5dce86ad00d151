"""Tool calls that come in over the bridge: the same surface, checks and timeline as the loop's."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from tool_registry.context import ToolContext
from tool_registry.errors import CallError, PortsideError
from tool_registry.registry import Entry
from worker import wording
from worker.bridge.results import failure, result_of
from worker.call_events import CallEvents
from worker.errors import job_is_over
from worker.names import resolve
from worker.surface import ToolSurface

_MAX_PARALLEL = 8
_LOG = logging.getLogger("portside.worker")


@dataclass(frozen=True, slots=True)
class CallerOf:
    """Whose calls these are.

    Attributes:
        context: the job's; each call gets a copy with its own id.
        iteration: how many model requests were made so far.
        on_job_over: told that the orchestrator no longer knows the job as running.
    """

    context: ToolContext
    iteration: Callable[[], int]
    on_job_over: Callable[[PortsideError], None]


class BridgeCalls:
    """Runs calls, at most eight at a time; a call that can't run answers why, as a failed result."""

    def __init__(self, surface: ToolSurface, told: CallEvents, caller: CallerOf) -> None:
        self._surface = surface
        self._told = told
        self._caller = caller
        self._room = asyncio.Semaphore(_MAX_PARALLEL)
        self._serial = count(1)

    async def run(self, written: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Run one call; answers an MCP result. Cancelling it cancels the tool."""
        call_id = f"mcp-{next(self._serial)}"
        resolved = resolve(written, self._surface.names())
        entry = self._surface.entry(resolved.name) if resolved.name else None
        name = entry.name if entry else written[:100]
        first = self._told.begun(call_id, name, entry, params, self._caller.iteration())
        started = asyncio.get_running_loop().time()

        def failed(verdict: str, text: str, error: CallError | None = None) -> dict[str, Any]:
            took_ms = int((asyncio.get_running_loop().time() - started) * 1000)
            self._told.failed(call_id, name, verdict, text, duration_ms=took_ms, first=first, error=error)
            return failure(text)

        if entry is None:
            return failed("tool_not_found", wording.unknown_tool(written, resolved.near))
        try:
            async with self._room:
                output = await self._surface.execute(
                    entry.name, dict(params), replace(self._caller.context, call_id=call_id)
                )
        except asyncio.CancelledError:
            failed("cancelled", wording.CANCELLED)
            raise
        except CallError as error:
            if job_is_over(error):
                self._caller.on_job_over(error)
            return failed(error.code, wording.call_error(error), error)
        except Exception:  # noqa: BLE001 - any bug of a tool costs its call, not the job
            return failed("internal", _broken(entry))
        result = result_of(output)
        self._told.gave(call_id, name, output, output.text(), first=first)
        return result


def _broken(entry: Entry) -> str:
    _LOG.exception("the tool %s broke", entry.name)
    return f"internal: the tool {entry.name} broke; this is no fault of the arguments"

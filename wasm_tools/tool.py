"""A guest as a tool of the registry."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import Any

from tool_registry.context import ToolContext
from tool_registry.definition import ToolDefinition
from tool_registry.errors import ToolFailed, ToolTimeout
from tool_registry.output import ToolOutput
from tool_registry.tool import ToolTraits
from wasm_tools.call import Answer, Guest
from wasm_tools.causes import HINTS, Cause, Failure
from wasm_tools.host import Host, Hosts
from wasm_tools.limits import Limits
from wasm_tools.runtime import WasmRuntime
from wasm_tools.state import CallState
from wasm_tools.typed import TypedExport

_LOG = logging.getLogger(__name__)
_LEVELS = {"trace": 5, "debug": 10, "info": 20, "warn": 30, "error": 40}


class WasmTool:
    """A component that models can call. Every call runs in an instance of its own, off the event loop."""

    def __init__(
        self,
        definition: ToolDefinition,
        traits: ToolTraits,
        guest: Guest,
        runtime: WasmRuntime,
        limits: Limits,
        hosts: Hosts,
        export: TypedExport | None = None,
    ) -> None:
        self.definition = definition
        self.traits = traits
        self._guest = guest
        self._runtime = runtime
        self._limits = limits
        self._hosts = hosts
        self._export = export

    async def execute(self, params: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Run one call.

        Raises:
            ToolTimeout: its limit, or the caller's deadline, passed; it was stopped.
            ToolFailed: it crashed, or broke its contract; `cause` says how.
            ToolUnavailable: no thread was free; it did not run.
        """
        host = self._hosts.open(context)
        try:
            answer = await self._runtime.run(
                lambda state: self._call(state, host, params, context),
                self._limits_for(context),
            )
        finally:
            host.close()
        if isinstance(answer, Answer):
            return ToolOutput(answer.text, is_error=answer.is_error)
        kind = ToolTimeout if answer.cause is Cause.TIMEOUT else ToolFailed
        raise kind(answer.message, cause=answer.cause.value, hint=HINTS.get(answer.cause))

    def _call(
        self, state: CallState, host: Host, params: dict[str, Any], context: ToolContext
    ) -> Answer | Failure:
        if self._export is None:
            params_json = json.dumps(params, separators=(",", ":"), allow_nan=False)
            context_json = json.dumps({"job_id": context.job_id, "call_id": context.call_id})
            answer = self._guest.execute(state, host, params_json, context_json)
        else:
            answer = self._guest.call(state, host, self._export, params)
        for line in state.logs:
            _LOG.log(
                _LEVELS[line.level],
                "%s: %s",
                self.definition.name,
                line.text,
                extra={"job_id": context.job_id, "call_id": context.call_id},
            )
        if state.logs_dropped:
            _LOG.warning("%s: %d more log lines were dropped", self.definition.name, state.logs_dropped)
        return answer

    def _limits_for(self, context: ToolContext) -> Limits:
        if context.deadline is None:
            return self._limits
        left = max(0.0, context.deadline - self._runtime.clock.monotonic())
        return replace(self._limits, timeout_s=min(left, self._limits.timeout_s))


class UnloadedTool:
    """Stands in the registry for a file that could not be loaded, so that its reason is seen."""

    def __init__(self, name: str, traits: ToolTraits, reason: str) -> None:
        self.definition = ToolDefinition(name, "", "{}")
        self.traits = traits
        self._reason = reason

    async def execute(self, params: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Refuse.

        Raises:
            ToolFailed: always, with the reason.
        """
        raise ToolFailed(f"{self.definition.name} was not loaded: {self._reason}", cause="failed_to_load")

"""Orchestrator tools that do what a test needs, one of each kind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tool_registry.context import ToolContext
from tool_registry.definition import ToolDefinition
from tool_registry.errors import ToolFailed, ToolUnavailable
from tool_registry.output import ToolOutput
from tool_registry.registry import Offer
from tool_registry.tool import Approval, RateLimit, ToolSource, ToolTraits
from tool_registry.visibility import ToolState

OWNER = "fake"
SECRET = "sk-ab:cd+ef/gh==-marker"
_TEXT = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "times": {"type": "integer", "minimum": 1}},
    "required": ["text"],
    "additionalProperties": False,
}
_ANY: dict[str, Any] = {"type": "object"}

Act = Callable[[dict[str, Any], ToolContext], Awaitable[Any]]


class FakeTool:
    """A tool over a function; it remembers who called it with what.

    Attributes:
        calls: the arguments of every call that reached it.
        cancelled: calls that were ended from outside.
    """

    def __init__(self, name: str, act: Act, parameters: Mapping[str, Any] = _ANY, **traits: Any) -> None:
        self.definition = ToolDefinition.of(name, f"the {name} tool", parameters)
        given: dict[str, Any] = {"rate_limit": None} | traits
        whole: dict[str, Any] = {"source": ToolSource.MCP, "owner": OWNER, **given}
        self.traits = ToolTraits(**whole)
        self.calls: list[dict[str, Any]] = []
        self.contexts: list[ToolContext] = []
        self.cancelled = 0
        self._act = act

    async def execute(self, params: dict[str, Any], context: ToolContext) -> ToolOutput:
        self.calls.append(params)
        self.contexts.append(context)
        try:
            result = await self._act(params, context)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return result if isinstance(result, ToolOutput) else ToolOutput(result)


class FakeTools:
    """The set that tests of the service work with.

    Attributes:
        gate: `held` and `slow_read` calls wait for it.
        entered: set while a gated call waits.
        states: tools that are not active, by name.
    """

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.entered = asyncio.Event()
        self.secret = SECRET
        self._tools = {tool.definition.name: tool for tool in self._make()}

    def __getitem__(self, name: str) -> FakeTool:
        return self._tools[name]

    def offers(self) -> list[Offer]:
        states = {"switched_off": ToolState.DISABLED, "broken_file": ToolState.FAILED_TO_LOAD}
        return [Offer(tool, states.get(name, ToolState.ACTIVE)) for name, tool in self._tools.items()]

    def _make(self) -> list[FakeTool]:
        return [
            FakeTool("echo", _echo, _TEXT, read_only=True, sensitive=("/text",)),
            FakeTool("count", self._count),
            FakeTool("held", self._held),
            FakeTool("slow_read", self._held, read_only=True),
            FakeTool("endless", _endless, timeout_s=0.05),
            FakeTool("breaks", self._breaks),
            FakeTool("has_bug", _has_bug),
            FakeTool("down", _down),
            FakeTool("says_no", _says_no),
            FakeTool("huge", _huge, read_only=True),
            FakeTool("leaks", self._leaks, read_only=True),
            FakeTool("limited", _done, rate_limit=RateLimit(calls=2, per_s=60.0)),
            FakeTool("gated", _done, approval=Approval.ALWAYS),
            FakeTool(
                "asks",
                _done,
                approval=Approval.BY_PARAMS,
                needs_approval=_forced,
            ),
            FakeTool("switched_off", _done),
            FakeTool("broken_file", _done),
            FakeTool("for_others", _done, surface="representative"),
        ]

    async def _count(self, _params: dict[str, Any], _context: ToolContext) -> int:
        return len(self["count"].calls)

    async def _held(self, params: dict[str, Any], _context: ToolContext) -> Any:
        self.entered.set()
        await self.gate.wait()
        return params

    async def _breaks(self, _params: dict[str, Any], _context: ToolContext) -> Any:
        raise ToolFailed(f"the server broke: Authorization: {self.secret}", cause="crash")

    async def _leaks(self, _params: dict[str, Any], _context: ToolContext) -> Any:
        return {"environment": f"KEY={self.secret}"}


def _forced(params: Mapping[str, Any]) -> bool:
    return params.get("force") is True


async def _echo(params: dict[str, Any], _context: ToolContext) -> Any:
    return params["text"] * params.get("times", 1)


async def _done(_params: dict[str, Any], _context: ToolContext) -> Any:
    return "done"


async def _endless(_params: dict[str, Any], _context: ToolContext) -> Any:
    await asyncio.Event().wait()


async def _has_bug(_params: dict[str, Any], _context: ToolContext) -> Any:
    raise RuntimeError("in /srv/secret/place.py")


async def _down(_params: dict[str, Any], _context: ToolContext) -> Any:
    raise ToolUnavailable("the server is being reconnected", retry_after_s=2.0)


async def _says_no(_params: dict[str, Any], _context: ToolContext) -> ToolOutput:
    return ToolOutput.refusal("claim_conflict", "somebody else holds it")


async def _huge(params: dict[str, Any], _context: ToolContext) -> Any:
    return "".join(f"line {number}\n" for number in range(params.get("lines", 20_000)))

"""The one interface of everything a model can call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from tool_registry.context import ToolContext
from tool_registry.definition import ToolDefinition
from tool_registry.output import ToolOutput


class ToolSource(StrEnum):
    """Where a tool comes from."""

    MCP = "mcp"
    WASM = "wasm"
    NETWORK = "network"
    LOCAL = "local"
    MANAGEMENT = "management"
    PROXY = "proxy"


class ToolDomain(StrEnum):
    """Where a tool runs."""

    ORCHESTRATOR = "orchestrator"
    CONTAINER = "container"


class Approval(StrEnum):
    """Whether a person has to agree before a call runs."""

    NEVER = "never"
    ALWAYS = "always"
    BY_PARAMS = "by_params"


@dataclass(frozen=True, slots=True)
class RateLimit:
    """`calls` at once, won back evenly over `per_s` seconds, for one job and tool.

    Raises:
        ValueError: it would let nothing pass, ever.
    """

    calls: int = 60
    per_s: float = 60.0

    def __post_init__(self) -> None:
        if self.calls < 1 or not 0 < self.per_s < float("inf"):
            raise ValueError("a rate limit needs one call or more, and a time above 0 s")


def _never(_params: Mapping[str, Any]) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class ToolTraits:
    """What a tool declares about itself, beside its definition.

    Attributes:
        source: where it comes from.
        owner: the server, file or package that offers it; replaced and removed as a whole.
        original_name: the owner's own name for it; the call reaches the owner under this name.
        domain: where it runs.
        approval: whether a person has to agree.
        needs_approval: for `BY_PARAMS`, a pure function of the arguments.
        timeout_s: how long one call may take.
        rate_limit: None is unlimited.
        read_only: changes nothing; may run again after a crash, and beside others.
        idempotent: running it twice is running it once.
        destructive: may destroy what it touches.
        awaits_others: what it answers depends on what others do meanwhile: the same call again is waiting.
        sensitive: JSON pointers of arguments that are never logged.
        coerce_safe: its calls are coerced as under the job's policy `coerce: safe`.
        surface: whom it is for: `worker` (every member of a network: jobs and agents from outside),
            `representative`, or `any` (every job).
    """

    source: ToolSource
    owner: str
    original_name: str = ""
    domain: ToolDomain = ToolDomain.ORCHESTRATOR
    approval: Approval = Approval.NEVER
    needs_approval: Callable[[Mapping[str, Any]], bool] = _never
    timeout_s: float = 60.0
    rate_limit: RateLimit | None = RateLimit()
    read_only: bool = False
    idempotent: bool = False
    destructive: bool = False
    awaits_others: bool = False
    sensitive: tuple[str, ...] = ()
    surface: str = "any"
    coerce_safe: bool = False


@runtime_checkable
class PromisesOutput(Protocol):
    """A tool that says what its results look like when they are no errors."""

    @property
    def output_schema(self) -> Mapping[str, Any]:
        """A JSON Schema that every such result fits."""
        ...


class Tool(Protocol):
    """Something a model can call.

    `definition.name` is the name its owner proposes; the registry decides the name it is shown under.
    """

    @property
    def definition(self) -> ToolDefinition:
        """Name, description and schema, as the owner gave them."""
        ...

    @property
    def traits(self) -> ToolTraits:
        """What it declares about itself."""
        ...

    async def execute(self, params: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Run one call whose arguments fit the schema.

        Cancelling the task cancels the call; the tool stops what it started before it returns.

        Raises:
            CallError: the call gave no output; `outcome` says whether it had effects.
        """
        ...

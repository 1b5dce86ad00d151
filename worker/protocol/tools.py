"""Tools on the wire."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from worker.protocol.model import Answer, Request


class WireToolDefinition(Answer):
    """A tool as a model sees it; `parameters` is the owner's JSON Schema, key order kept."""

    name: str
    description: str
    parameters: dict[str, Any]


class ToolPolicy(Answer):
    """What a worker needs to know to run a remote tool well; no part of the definition."""

    read_only: bool = False
    idempotent: bool = False
    destructive: bool = False
    awaits_others: bool = False
    timeout_s: float = 60.0
    sensitive: list[str] = Field(default_factory=list[str])


class Catalog(Answer):
    """The job's hosted-visible tools.

    `catalog_version` is `sha256:` over canonical JSON of the other three.
    """

    tools: list[WireToolDefinition]
    toolset_instructions: list[str] = Field(default_factory=list[str])
    policies: dict[str, ToolPolicy] = Field(default_factory=dict[str, ToolPolicy])
    catalog_version: str


class ExecuteRequest(Request):
    """One tool call. The call's id travels as `Idempotency-Key`."""

    tool_name: str
    params: dict[str, Any] = Field(default_factory=dict[str, Any])


class WireTruncation(Answer):
    """How much of an output is not shown; `artifact` is where the whole lies."""

    original_bytes: int
    shown_bytes: int
    artifact: str | None = None


class WireAdjustment(Answer):
    """A change of a call's arguments before it ran, by JSON types.

    Attributes:
        kind: `dropped_null`, or `coerced` for text that was read as the value that it spells.
    """

    pointer: str
    kind: str
    was: str
    became: str = ""


class WireToolOutput(Answer):
    """A tool's answer; `is_error` means it ran and says that it failed."""

    result: Any = None
    is_error: bool = False
    content: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    cost_usd: str | None = None
    duration_ms: int = 0
    raw: Any = None
    truncated: WireTruncation | None = None
    adjustments: list[WireAdjustment] = Field(default_factory=list[WireAdjustment])


class ExecuteAnswer(Answer):
    """The output, and the catalogue's present version for a worker to notice changes by."""

    output: WireToolOutput
    catalog_version: str

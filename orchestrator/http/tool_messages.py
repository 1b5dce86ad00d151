"""The operator API's messages about tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field

from orchestrator.domain.shaping.family import Family
from orchestrator.http.operator_request import OperatorRequest
from orchestrator.services.tool_desk import ProviderVerdict, ToolView


class ToolSummary(BaseModel):
    """A tool in a list."""

    name: str
    description: str
    source: str
    owner: str
    original_name: str
    renamed: bool
    state: str
    reason: str
    hosted: bool
    hidden_reason: str
    hidden_because: str
    problem: str

    @classmethod
    def of(cls, view: ToolView) -> ToolSummary:
        """The summary of a tool."""
        return cls(**_summary(view))


class ToolDetail(ToolSummary):
    """A tool in full: what models see, and its policy."""

    parameters: dict[str, Any] | None
    approval: str
    timeout_s: float
    read_only: bool
    idempotent: bool
    destructive: bool
    grants: list[str] = []
    wants: list[str] = []

    def granting(self, grants: Sequence[str], wants: Sequence[str]) -> ToolDetail:
        """The same, with what the tool may reach, and what it asks for beyond."""
        return self.model_copy(update={"grants": list(grants), "wants": list(wants)})

    @classmethod
    def of(cls, view: ToolView) -> ToolDetail:
        """The detail of a tool."""
        traits = view.entry.traits
        return cls(
            **_summary(view),
            parameters=view.entry.definition.parameters if view.entry.schema else None,
            approval=traits.approval,
            timeout_s=traits.timeout_s,
            read_only=traits.read_only,
            idempotent=traits.idempotent,
            destructive=traits.destructive,
        )


def _summary(view: ToolView) -> dict[str, Any]:
    entry = view.entry
    return {
        "name": entry.name,
        "description": entry.definition.description,
        "source": entry.traits.source,
        "owner": entry.traits.owner,
        "original_name": entry.traits.original_name or entry.tool.definition.name,
        "renamed": entry.renamed,
        "state": entry.state,
        "reason": entry.reason,
        "hosted": not view.hidden,
        "hidden_reason": view.hidden,
        "hidden_because": view.because,
        "problem": view.problem,
    }


class ToolCallRequest(OperatorRequest):
    """A call by hand."""

    params: dict[str, Any] = Field(default_factory=dict[str, Any])


class CheckRequest(OperatorRequest):
    """Which tools to check for which providers; all tools, and the usual providers, when left out."""

    names: list[str] = Field(default_factory=list[str])
    providers: list[Family] = Field(default_factory=list[Family])


class ProviderView(BaseModel):
    """How a provider family sees a tool."""

    provider: str
    verdict: Literal["unchanged", "changed", "refused"]
    changes: list[str]
    refusals: list[str]

    @classmethod
    def of(cls, verdict: ProviderVerdict) -> ProviderView:
        """The view of a verdict."""
        shaped = verdict.shaped
        word: Literal["unchanged", "changed", "refused"] = "changed" if shaped.changes else "unchanged"
        return cls(
            provider=verdict.family,
            verdict="refused" if shaped.refusals else word,
            changes=list(shaped.changes),
            refusals=list(shaped.refusals),
        )


class WasmRequest(OperatorRequest):
    """A WASM tool's two files, base64."""

    wasm: str
    sidecar: str | None = None
    agreed: bool = False


class AgreeRequest(OperatorRequest):
    """What a WASM tool's file asks for beyond what was agreed to, as a person has seen it."""

    asks: list[str]


class SidecarRequest(OperatorRequest):
    """A capabilities file, base64."""

    sidecar: str

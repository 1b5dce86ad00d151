"""How each provider sees the tools."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import structlog

from orchestrator.domain.shaping.family import Family
from orchestrator.domain.shaping.tool import ShapedTool, shape_tools
from tool_registry.registry import Entry
from tool_registry.visibility import ToolState

_FILE_STEM = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_IN_USE = frozenset({ToolState.ACTIVE, ToolState.DISABLED})
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ProviderVerdict:
    """How one provider family will see a tool."""

    family: Family
    shaped: ShapedTool


def judged(entries: Iterable[Entry], families: Sequence[Family]) -> dict[str, list[ProviderVerdict]]:
    """How each provider family sees each tool that is active, when they are shown together."""
    active = [entry for entry in entries if entry.state is ToolState.ACTIVE]
    offered = [(one.name, one.definition.description, one.definition.parameters_json) for one in active]
    found: dict[str, list[ProviderVerdict]] = {entry.name: [] for entry in active}
    for family in families:
        for entry, shaped in zip(active, shape_tools(offered, family), strict=True):
            found[entry.name].append(ProviderVerdict(family, shaped))
    return found


def offered(entry: Entry) -> tuple[str, str, str]:
    """A tool as a request shows it: `(name, description, schema)`."""
    return entry.name, entry.definition.description, entry.definition.parameters_json

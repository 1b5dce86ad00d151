"""Tools as one provider is shown them, and the way back for the arguments of its calls."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Self

from pydantic_ai.tools import ToolDefinition

from orchestrator.domain.shaping.family import Family
from orchestrator.domain.shaping.properties import rename_keys
from orchestrator.domain.shaping.tool import ShapedTool, shape_tools
from orchestrator.ports.models import ModelTool, ModelToolCall


class ShownTools:
    """The tools of one request after shaping; those the provider refuses are left out, the others stay."""

    def __init__(self, shaped: Sequence[ShapedTool]) -> None:
        self._shaped = {tool.name: tool for tool in shaped if not tool.refusals}
        self.refused = tuple(tool for tool in shaped if tool.refusals)

    @classmethod
    def of(cls, tools: Sequence[ModelTool], family: Family) -> Self:
        """Shape a request's tools."""
        return cls(
            shape_tools([(tool.name, tool.description, tool.parameters_json) for tool in tools], family)
        )

    def definitions(self) -> list[ToolDefinition]:
        """The definitions in the library's form, in the order given."""
        return [
            ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=tool.schema)
            for tool in self._shaped.values()
        ]

    def shown_arguments(self, call: ModelToolCall) -> str:
        """A past call's arguments with its properties under the names that the model knows."""
        return self._renamed(call.name, call.arguments, back=False)

    def original_arguments(self, name: str, arguments: str) -> str:
        """A new call's arguments with the owner's property names; the text itself where none was renamed."""
        return self._renamed(name, arguments, back=True)

    def _renamed(self, name: str, arguments: str, *, back: bool) -> str:
        tool = self._shaped.get(name)
        if tool is None or not tool.renames:
            return arguments
        names: Mapping[str, str] = tool.renames
        if back:
            names = {shown: original for original, shown in names.items()}
        try:
            value: Any = json.loads(arguments)
        except (ValueError, RecursionError):  # not JSON: the worker tells the model so
            return arguments
        return json.dumps(rename_keys(value, names), ensure_ascii=False, separators=(",", ":"))

"""`finish`: how a model says that the task is over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tool_registry.context import ToolContext
from tool_registry.definition import ToolDefinition
from tool_registry.output import ToolOutput
from tool_registry.tool import ToolDomain, ToolSource, ToolTraits

FINISH = "finish"

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "success": {
            "type": "boolean",
            "description": "true when the task is done; false when it can't be done.",
        },
        "summary": {
            "type": "string",
            "description": "What was done and checked, or why it could not be done. The user reads this.",
            "minLength": 1,
        },
    },
    "required": ["success", "summary"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Finished:
    """What the model said at the end."""

    success: bool
    summary: str


class FinishTool:
    """Takes the model's own verdict; the loop ends after the turn that called it."""

    def __init__(self) -> None:
        self.taken: Finished | None = None
        self.definition = ToolDefinition.of(
            FINISH,
            "End the job. Call it once, alone, when the task is done or can't be done;"
            " nothing can be done after it.",
            _SCHEMA,
        )
        self.traits = ToolTraits(
            ToolSource.LOCAL, owner="worker", domain=ToolDomain.CONTAINER, rate_limit=None, idempotent=True
        )

    async def execute(self, params: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Keep the first verdict."""
        if self.taken is None:
            self.taken = Finished(params["success"], params["summary"])
        return ToolOutput("The job ends now.")

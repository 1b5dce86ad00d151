"""text_diff: what changed between two texts, as a component of the world portside:tool/sandboxed-tool."""

import difflib
import json

from wit_world import exports
from wit_world.exports import tool

MAX_LINES = 20_000
SCHEMA = {
    "type": "object",
    "properties": {
        "before": {"type": "string", "description": "The older text"},
        "after": {"type": "string", "description": "The newer text"},
        "name": {"type": "string", "maxLength": 200, "default": "text", "description": "What the headers call it"},
        "context": {"type": "integer", "minimum": 0, "maximum": 100, "default": 3, "description": "Lines around"},
    },
    "required": ["before", "after"],
    "additionalProperties": False,
}
DESCRIPTION = "Compares two texts line by line and answers a unified diff; an empty answer means that they are equal."


class Tool(exports.Tool):
    """The exported interface."""

    def execute(self, req: tool.Request) -> tool.Response:
        """Compare; texts that are too long are an error in words."""
        params = json.loads(req.params)
        before, after = (lines(params[key]) for key in ("before", "after"))
        if len(before) + len(after) > MAX_LINES:
            return tool.Response(output=None, error=f"the texts have more than {MAX_LINES:,} lines together")
        return tool.Response(output=diff(before, after, params), error=None)

    def schema(self) -> str:
        """The parameters."""
        return json.dumps(SCHEMA)

    def description(self) -> str:
        """For the model."""
        return DESCRIPTION


def lines(text):
    """The lines with their ends; only line feeds end one, as in a patch."""
    parts = text.split("\n")
    return [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def diff(before, after, params):
    """A unified diff; a last line without an end is marked as git does."""
    name = params.get("name", "text")
    found = difflib.unified_diff(before, after, f"a/{name}", f"b/{name}", n=params.get("context", 3))
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in found)

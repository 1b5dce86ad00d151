"""A tool as MCP lists it, for those who serve tools over MCP; plain JSON, no MCP library."""

from __future__ import annotations

from typing import Any

from tool_registry.registry import Entry
from tool_registry.tool import PromisesOutput


def tool_of(entry: Entry, *, outputs: bool = False) -> dict[str, Any]:
    """A tool's listing: name, description and schema as its owner gave them, and what it declares.

    MCP wants `"type": "object"` at a schema's root. It is added to a copy where an owner left it out, which
    changes nothing: arguments are an object always.

    Args:
        entry: the tool.
        outputs: say what its results look like too, where it says so itself.
    """
    definition, traits = entry.definition, entry.traits
    schema = definition.parameters
    if schema.get("type") != "object":
        schema = {**schema, "type": "object"}
    listing: dict[str, Any] = {
        "name": definition.name,
        "description": definition.description,
        "inputSchema": schema,
        "annotations": {
            "readOnlyHint": traits.read_only,
            "destructiveHint": traits.destructive,
            "idempotentHint": traits.idempotent,
        },
    }
    if outputs and isinstance(entry.tool, PromisesOutput):
        listing["outputSchema"] = dict(entry.tool.output_schema)
    return listing

"""What the five local tools have in common."""

from __future__ import annotations

from typing import Any

from tool_registry.tool import ToolDomain, ToolSource, ToolTraits


def local_traits(name: str, **own: Any) -> ToolTraits:
    """The traits of a tool that runs beside the agent's files; `own` are those that only it has."""
    return ToolTraits(
        source=ToolSource.LOCAL,
        owner="local",
        original_name=name,
        domain=ToolDomain.CONTAINER,
        rate_limit=None,
        surface="worker",
        **own,
    )


def path_property(description: str, **more: Any) -> dict[str, Any]:
    """The JSON Schema of an argument that names a file or directory."""
    return {"type": "string", "minLength": 1, "maxLength": 4096, **more, "description": description}

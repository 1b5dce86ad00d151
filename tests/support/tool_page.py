"""A tool as a page of the docs shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tool_registry.definition import ToolDefinition


def section(
    definition: ToolDefinition,
    output_schema: Mapping[str, Any],
    refusals: Sequence[str],
    *,
    always: str,
    more: str = "",
) -> str:
    """A tool's section.

    Args:
        definition: the tool.
        output_schema: what its results fit.
        refusals: the codes of its own.
        always: the code that any tool of the page can answer.
        more: what follows its description.
    """
    schema = definition.parameters
    rows = [
        f"| `{name}{'*' * (name in schema['required'])}` | {bounds(one)} | {one['description']} |"
        for name, one in schema["properties"].items()
    ]
    table = (
        ["| argument | type | meaning |\n|---|---|---|", *rows, ""] if rows else ["It takes no arguments.\n"]
    )
    codes = ", ".join(f"`{code}`" for code in refusals) or f"none but `{always}`"
    return "\n".join(
        [
            f"## {definition.name}\n",
            f"{definition.description}{more}\n",
            *table,
            "Result:\n",
            f"```text\n{shape(dict(output_schema))}\n```\n",
            f"Refusals: {codes}.\n",
        ]
    )


def bounds(schema: dict[str, Any]) -> str:
    """A type with its bounds, as a table's cell."""
    said = [schema["type"]]
    if schema["type"] == "array":
        items = schema["items"]
        said = [f"{_members(items) if items['type'] == 'object' else items['type']}[]"]
    if "enum" in schema:
        said = [" or ".join(f"`{value}`" for value in schema["enum"])]
    if "maxLength" in schema:
        said.append(f"1 to {schema['maxLength']:,} characters")
    if "maxItems" in schema:
        said.append(f"at most {schema['maxItems']}")
    if "maximum" in schema:
        said.append(f"{schema['minimum']} to {schema['maximum']:,}")
    elif "minimum" in schema:
        said.append(f"{schema['minimum']} or more")
    if "default" in schema:
        said.append(f"default `{schema['default']}`")
    return ", ".join(said)


def _members(schema: dict[str, Any]) -> str:
    names = (f"{name}{'*' * (name in schema['required'])}" for name in schema["properties"])
    return f"{{{', '.join(names)}}}"


def shape(schema: dict[str, Any], indent: str = "") -> str:
    """A result's schema, short enough to be read."""
    if "anyOf" in schema:
        return " | ".join(shape(one, indent) for one in schema["anyOf"])
    kinds: list[str] = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    mark = "?" if "null" in kinds else ""
    if kinds[0] == "array":
        return f"[{shape(schema['items'], indent)}]{mark}"
    if kinds[0] != "object":
        named = "|".join(filter(None, schema["enum"])) if "enum" in schema else schema.get("format", kinds[0])
        return named + mark
    deeper = indent + "  "
    members = {name: shape(one, deeper) for name, one in schema["properties"].items()}
    line = ", ".join(f"{name}: {shape}" for name, shape in members.items())
    if "\n" not in line and len(indent) + len(line) < 100:
        return f"{{{line}}}{mark}"
    lines = "".join(f"\n{deeper}{name}: {shape}" for name, shape in members.items())
    return f"{{{lines}\n{indent}}}{mark}"

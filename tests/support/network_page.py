"""`docs/network-tools.md`, rendered from the tools themselves: `python -m tests.support.network_page`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from orchestrator.domain.network.refusals import MEANINGS
from orchestrator.services.network_tools import NetworkTool
from tests.fakes.network_store import MemoryNetworkStore
from tests.support.networks import World

PAGE = Path(__file__).resolve().parents[2] / "docs" / "network-tools.md"

_HEAD = """# The network tools

Rendered from `orchestrator/services/network_tools.py`; a test fails when this page and the tools differ. To render it
again: `python -m tests.support.network_page`.

Who acts is the job's token, never an argument. Everything is in the caller's network: what lies in another one is
`not_found`. `*` marks what is required; no other arguments are taken. A result is JSON; `T?` may be null. A rule's no is a
result with `is_error`, and `{code, message, ...}`. A call that is repeated with its id repeats its answer, not its effect.
"""

_OPERATORS = """Any tool can answer `not_a_member`. `agent_has_work`, `invalid_name`, `kind_is_fixed`,
`managed_elsewhere`, `name_taken`, `not_a_human` and `not_served_by_jobs` are told to operators.
"""


def render() -> str:
    """The whole page."""
    tools = World(MemoryNetworkStore()).tools.values()
    codes = [f"| `{code}` | {meaning} |" for code, meaning in MEANINGS.items()]
    return "\n".join(
        [
            _HEAD,
            *(_section(tool) for tool in tools),
            "## Refusals\n",
            _OPERATORS,
            "| code | it says |\n|---|---|",
            *codes,
            "",
        ]
    )


def _section(tool: NetworkTool) -> str:
    definition = tool.definition
    schema = definition.parameters
    rows = [
        f"| `{name}{'*' * (name in schema['required'])}` | {bounds(one)} | {one['description']} |"
        for name, one in schema["properties"].items()
    ]
    table = (
        ["| argument | type | meaning |\n|---|---|---|", *rows, ""] if rows else ["It takes no arguments.\n"]
    )
    refusals = ", ".join(f"`{code}`" for code in tool.refusals) or "none but `not_a_member`"
    return "\n".join(
        [
            f"## {definition.name}\n",
            f"{definition.description}\n",
            *table,
            "Result:\n",
            f"```text\n{shape(tool.output_schema)}\n```\n",
            f"Refusals: {refusals}.\n",
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
        named = (
            "|".join(one for one in schema["enum"] if one is not None)
            if "enum" in schema
            else schema.get("format", kinds[0])
        )
        return named + mark
    deeper = indent + "  "
    members = {name: shape(one, deeper) for name, one in schema["properties"].items()}
    line = ", ".join(f"{name}: {shape}" for name, shape in members.items())
    if "\n" not in line and len(indent) + len(line) < 100:
        return f"{{{line}}}{mark}"
    lines = "".join(f"\n{deeper}{name}: {shape}" for name, shape in members.items())
    return f"{{{lines}\n{indent}}}{mark}"


if __name__ == "__main__":
    PAGE.write_text(render())

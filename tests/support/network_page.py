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

_TOOLBOX = """## The agent toolbox

Three tools to find a peer, hand it work and fetch what it answered. A search compares meanings: the vectors of a network's profiles
are exact and made on this machine, by [a small model](adr/0032-embeddings-on-onnxruntime.md) that is loaded by the first search. It leaves
out, in this order and before it counts to `top_k`: the caller, humans, agents without an instance that can take work (unless they are
started by themselves), agents with an unanswered request between them and the caller, and agents that let a request of the caller's
time out in the last 10 minutes. The message says how many of each. `similarity_score` is calibrated: 0 means nothing, 0.2 is plausible, and
a query that nobody fits has no results.

A request for collaboration is an ask in a thread of its own; the target's first `network_reply` there is the response. Its life is longer
than the wait: a response that comes too late is kept for 24 hours, goes to the requester's inbox, and is handed out once
by `check_collaboration_result`. Neither a lost connection nor a killed process changes that. Whose work a request is part of is kept by the
server: of the requests that an instance was given and has not answered, and of the tasks that it has accepted. Who stands in that chain
can't be asked again, and a sixth hop is refused. `success: false` is a result, not an error; its `error` is one of:

| error | it says |
|---|---|
| `timeout` | no response in time; `request_id` fetches it later |
| `target_agent_not_found` | there is no such agent in this network |
| `target_not_active` | no instance can take it, and none is started by itself |
| `self_request_error` | the target is the caller's own agent |
| `target_is_human_error` | humans answer no requests; `network_ask` reaches them |
| `collaboration_loop_detected` | the target waits for the work that this is part of |
| `collaboration_chain_too_long` | the work was handed on five times already |
"""

_OPERATORS = """Any tool can answer `not_a_member`. `agent_has_work`, `invalid_name`, `kind_is_fixed`,
`managed_elsewhere`, `name_taken`, `not_a_human` and `not_served_by_jobs` are told to operators.
"""


def render() -> str:
    """The whole page."""
    world = World(MemoryNetworkStore())
    codes = [f"| `{code}` | {meaning} |" for code, meaning in MEANINGS.items()]
    return "\n".join(
        [
            _HEAD,
            *(_section(tool) for tool in world.tools.values()),
            _TOOLBOX,
            *(_section(tool) for tool in world.toolbox.values()),
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


if __name__ == "__main__":
    PAGE.write_text(render())

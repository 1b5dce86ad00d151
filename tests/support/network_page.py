"""`docs/network-tools.md`, rendered from the tools themselves: `python -m tests.support.network_page`."""

from __future__ import annotations

from pathlib import Path

from orchestrator.domain.network.refusals import MEANINGS
from orchestrator.services.network_tools import NetworkTool
from tests.fakes.network_store import MemoryNetworkStore
from tests.support.networks import World
from tests.support.tool_page import section

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
    return section(tool.definition, tool.output_schema, tool.refusals, always="not_a_member")


if __name__ == "__main__":
    PAGE.write_text(render())

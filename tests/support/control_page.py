"""`docs/control-tools.md`, rendered from the tools themselves: `python -m tests.support.control_page`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from orchestrator.domain.network.refusals import CONTROL_MEANINGS
from orchestrator.services.control_tool import ControlTool
from orchestrator.services.control_tools import control_tools
from tests.support.tool_page import section

PAGE = Path(__file__).resolve().parents[2] / "docs" / "control-tools.md"

_HEAD = """# The control tools

For representatives, at `/mcp/control`: [Let somebody act for you](how-to/representatives.md). Rendered from
`orchestrator/services/control_tools.py`; a test fails when this page and the tools differ. To render it again:
`python -m tests.support.control_page`.

A representative acts for a person, in the networks where both have a right: its grant *and* the person's access, looked up at every call. Other networks
do not exist for it. `*` marks what is required; no other arguments are taken. A result is JSON; `T?` may be null. A rule's no is a result with `is_error`,
and `{code, message, ...}`. Codes that are not below are those of [the network's tools](network-tools.md#refusals).
"""


def tools() -> list[ControlTool]:
    """The tools without anything behind them: only what they say is looked at."""
    nothing = cast("Any", _Nothing())
    return control_tools(nothing, nothing, nothing, nothing, lambda: None)


class _Nothing:
    def __getattr__(self, _name: str) -> None:
        return None


def render() -> str:
    """The whole page."""
    codes = [f"| `{code}` | {meaning} |" for code, meaning in CONTROL_MEANINGS.items()]
    return "\n".join(
        [
            _HEAD,
            *(_section(tool) for tool in tools()),
            "## Refusals\n",
            "Any tool can answer `not_a_representative`.\n",
            "| code | it says |\n|---|---|",
            *codes,
            "",
        ]
    )


def _section(tool: ControlTool) -> str:
    needs = "no right" if tool.needs is None else f"the right `{tool.needs}`"
    return section(
        tool.definition,
        tool.output_schema,
        tool.refusals,
        always="not_a_representative",
        more=f" Needs {needs}.",
    )


if __name__ == "__main__":
    PAGE.write_text(render())

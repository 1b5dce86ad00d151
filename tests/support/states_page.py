"""`docs/states.md`, rendered from the tables that the code obeys: `python -m tests.support.states_page`."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

from orchestrator.domain.jobs import TRANSITIONS as JOBS
from orchestrator.domain.network.task_states import MOVES, NEEDS_REASON, Role, TaskState
from orchestrator.domain.network.task_states import TRANSITIONS as TASKS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "states.md"

_HEAD = """# States

Rendered from `orchestrator/domain/jobs.py` and `orchestrator/domain/network/task_states.py`; a test fails when this
page and the tables differ. To render it again: `python -m tests.support.states_page`.
"""


def render() -> str:
    """The whole page."""
    reasons = ", ".join(f"`{state}` ({what})" for state, what in NEEDS_REASON.items())
    return "\n".join(
        [
            _HEAD,
            "## Jobs\n",
            "A job is `cancelling` until nothing of it runs. What ends a job without its worker's word is decided in",
            "`orchestrator/domain/plan.py`.\n",
            _table(JOBS),
            _diagram(JOBS),
            "## Tasks\n",
            f"An update to these states needs a reason: {reasons}.\n",
            _table(TASKS),
            "Who may do it. An agent asks with `network_task_update`; the network offers, lets offers lapse, takes work back",
            "from instances that ended (once, then the task fails), and cancels what was delegated for a cancelled task. An",
            "instance that was offered a task declines it with `cancelled`.\n",
            _rights(),
            _diagram(TASKS),
        ]
    )


def _rights() -> str:
    rows = [f"| `{state}` | `{to}` | {_who(state, to)} |" for state, moves in MOVES.items() for to in moves]
    return "\n".join(["| from | to | who |", "|---|---|---|", *rows, ""])


def _who(state: TaskState, to: TaskState) -> str:
    return ", ".join(role for role in Role if role in MOVES[state][to])


def _table(transitions: Mapping[Any, AbstractSet[Any]]) -> str:
    rows = [f"| `{state}` | {_listed(transitions, after)} |" for state, after in transitions.items()]
    return "\n".join(["| from | to |", "|---|---|", *rows, ""])


def _listed(order: Mapping[Any, AbstractSet[Any]], states: AbstractSet[Any]) -> str:
    return ", ".join(f"`{state}`" for state in order if state in states) or "(the end)"


def _diagram(transitions: Mapping[Any, AbstractSet[Any]]) -> str:
    first = next(iter(transitions))
    arrows = [
        f"    {state} --> {to}" for state, after in transitions.items() for to in transitions if to in after
    ]
    ends = [f"    {state} --> [*]" for state, after in transitions.items() if not after]
    return "\n".join(["```mermaid", "stateDiagram-v2", f"    [*] --> {first}", *arrows, *ends, "```", ""])


if __name__ == "__main__":
    PAGE.write_text(render())

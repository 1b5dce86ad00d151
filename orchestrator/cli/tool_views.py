"""Tools as lines for their owner; nothing that a tool's author wrote acts on the terminal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rich.text import Text

from orchestrator.cli.visible import one_line, visible

View = Mapping[str, Any]


def facts_of(tool: View) -> list[str]:
    """All that is known of one tool, its schema last."""
    facts = [
        ("tool", tool["name"]),
        ("from", f"{tool['source']} {tool['owner']}, there called {tool['original_name']}"),
        ("state", f"{tool['state']} {tool['reason']}"),
        ("sandboxed jobs", "see it" if tool["hosted"] else f"do not see it: {tool['hidden_because']}"),
        ("approval", tool["approval"]),
        ("policy", ", ".join(_policy(tool))),
    ]
    if tool["source"] == "wasm":
        facts.append(("may", "; ".join(tool["grants"]) or "reach nothing"))
    rest = (("asks to", "; ".join(tool["wants"])), ("not in use", tool["problem"]))
    facts += [fact for fact in rest if fact[1]]
    facts.append(("description", tool["description"]))
    schema = visible(json.dumps(tool["parameters"], ensure_ascii=False, indent=2))
    return [*(f"{label:<15} {one_line(value, 2000)}" for label, value in facts), schema]


def row_of(tool: View, *, explain: bool) -> tuple[str | Text, ...]:
    """A tool in a list: name, source, verdict for sandboxed jobs with its reason, description."""
    if tool["hosted"] and tool["problem"]:
        reason = f"yes, as before its change: {tool['problem']}"
        verdict = Text(one_line(reason if explain else "yes, as before its change"), style="yellow")
    elif tool["hosted"]:
        verdict = Text("yes", style="green")
    else:
        reason = f"no: {tool['hidden_reason']}: {tool['hidden_because']}"
        verdict = Text(one_line(reason if explain else "no"), style="yellow")
    # A name that is not what its owner asked for says which tool it stands for.
    source = f"{tool['owner']} {tool['original_name']}" if tool["renamed"] else tool["source"]
    return (tool["name"], one_line(source, 60), verdict, one_line(tool["description"], 80))


def _policy(tool: View) -> list[str]:
    hints = [name for name in ("read_only", "idempotent", "destructive") if tool[name]]
    return [*hints, f"{tool['timeout_s']:g} s at most"]


def verdict_lines(name: str, view: View) -> list[Text]:
    """A line for the verdict, and one below it for each thing that was changed or is refused."""
    style = {"unchanged": "green", "changed": "yellow", "refused": "red"}[view["verdict"]]
    lines = [Text(f"{name + ' ' if name else ''}{view['provider']:<13} {view['verdict']}", style=style)]
    lines += [Text(f"  refused: {one_line(note, 1000)}", style="red") for note in view["refusals"]]
    return lines + [Text(f"  changed: {one_line(note, 1000)}") for note in view["changes"]]

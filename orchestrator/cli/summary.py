"""Tables that commands share."""

from __future__ import annotations

from typing import Any

from rich.table import Table


def calls_table(events: list[dict[str, Any]]) -> Table:
    """Every tool call of a timeline, in order; each tool's first call with its schema verdict."""
    sources = {one["data"]["call_id"]: one["data"]["source"] for one in events if one["type"] == "tool_use"}
    table = Table(title="Tool calls", title_justify="left")
    for column in ("tool", "source", "verdict", "first call"):
        table.add_column(column)
    table.add_column("ms", justify="right")
    for event in events:
        if event["type"] == "tool_result":
            table.add_row(*_row(event["data"], sources))
    return table


def _row(result: dict[str, Any], sources: dict[str, str]) -> tuple[str, ...]:
    style = "green" if result["verdict"] == "ok" else "red"
    return (
        result["tool_name"],
        sources.get(result["call_id"], ""),
        f"[{style}]{result['verdict']}[/]",
        _first(result) if result["first_call"] else "",
        str(result["duration_ms"]),
    )


def _first(result: dict[str, Any]) -> str:
    if result["verdict"] != "invalid_params":
        return "fits the schema"
    return "broke the schema: " + ", ".join(one["rule"] for one in result["errors"])

"""Tables that commands share."""

from __future__ import annotations

from typing import Any

from rich.table import Table


def calls_table(calls: list[dict[str, Any]]) -> Table:
    """Every call of the orchestrator's tools, with the verdict of each tool's first call marked."""
    table = Table(title="Calls of the orchestrator's tools", title_justify="left")
    for column in ("tool", "source", "verdict", "first call", "ms", "bytes"):
        table.add_column(column, justify="right" if column in {"ms", "bytes"} else "left")
    for call in calls:
        fits = (
            "fits the schema" if call["verdict"] != "invalid_params" else "broke " + ", ".join(call["rules"])
        )
        good = call["verdict"] in {"ok"}
        table.add_row(
            call["tool_name"],
            call["source"],
            f"[{'green' if good else 'red'}]{call['verdict']}[/]",
            fits if call["first_call"] else "",
            str(call["duration_ms"]),
            str(call["output_bytes"]),
        )
    return table

"""Tables that commands share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from orchestrator.cli.visible import one_line


def table(
    columns: Sequence[str], rows: Iterable[Sequence[str | Text]], *, title: str = "", empty: str = ""
) -> Table | Text:
    """A plain table; text is shown as it is, whatever markup it holds.

    Args:
        columns: their heads.
        rows: a cell for each column.
        title: stands above it.
        empty: stands in its place when there are no rows: what is not there, and how it comes to be.
    """
    rows = list(rows)
    if empty and not rows:
        return Text(empty)
    made = Table(title=title or None, title_justify="left", box=None, pad_edge=False, show_edge=False)
    for column in columns:
        made.add_column(column, no_wrap=True)
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else Text(one_line(cell)) for cell in row))
    return made


def calls_table(calls: Iterable[Mapping[str, Any]]) -> Table | Text:
    """A job's tool calls, in order; each tool's first call with its schema verdict.

    Args:
        calls: as the API tells them, or `calls_of` a timeline.
    """
    rows = [
        (
            one["tool_name"],
            one["source"],
            Text(one_line(one["verdict"]), style="green" if one["verdict"] == "ok" else "red"),
            _first(one) if one["first_call"] else "",
            str(one["duration_ms"]),
        )
        for one in calls
    ]
    return table(("tool", "source", "verdict", "first call", "ms"), rows, title="Tool calls")


def calls_of(events: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The tool calls of a timeline, local ones too."""
    sources: dict[str, str] = {}
    calls: list[dict[str, Any]] = []
    for event in events:
        data = event["data"]
        if event["type"] == "tool_use":
            sources[data["call_id"]] = data["source"]
        elif event["type"] == "tool_result":
            calls.append(
                {
                    "tool_name": data["tool_name"],
                    "source": sources.get(data["call_id"], ""),
                    "call_id": data["call_id"],
                    "verdict": data["verdict"],
                    "first_call": data["first_call"],
                    "rules": [one["rule"] for one in data["errors"]],
                    "duration_ms": data["duration_ms"],
                }
            )
    return calls


def adjustment(one: Mapping[str, Any]) -> str:
    """A change of a call's arguments, in words."""
    if one["kind"] == "dropped_null":
        return f"{one['pointer']} was null, which its schema refuses: dropped"
    return f"{one['pointer']} was a {one['was']} and is read as {one['became']}"


def _first(call: Mapping[str, Any]) -> str:
    if call["verdict"] != "invalid_params":
        return "fits the schema"
    return "broke the schema: " + ", ".join(call["rules"])

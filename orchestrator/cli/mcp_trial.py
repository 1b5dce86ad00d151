"""What `portside mcp test` shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from orchestrator.cli.summary import table
from orchestrator.cli.visible import one_line

_STYLES = {"unchanged": "green", "changed": "yellow", "refused": "red"}


def usable(server: Mapping[str, Any]) -> bool:
    """It connected, and no tool of it is refused here or by a provider."""
    return bool(
        _connected(server)
        and not server["refused"]
        and all(view["verdict"] != "refused" for tool in server["tools"] for view in tool["providers"])
    )


def trial_lines(server: Mapping[str, Any]) -> Iterator[RenderableType]:
    """A trial, for people."""
    if not _connected(server):
        reason = server["reason"] or server["last_error"]
        yield Text(one_line(f"{server['name']} is not usable: {reason}", 2000), style="red")
        return
    head = f"{server['name']} is ready: {server['tool_count']} tools, protocol {server['protocol_version']}"
    yield Text(one_line(head, 2000), style="green")
    yield from _facts(server)
    if server["tools"]:
        yield _tools(server["tools"])
    for tool in server["tools"]:
        for view in tool["providers"]:
            notes = "; ".join([*view["refusals"], *view["changes"]])
            if notes:
                line = Text(one_line(f"{tool['name']} for {view['provider']}: {notes}", 1000))
                line.stylize(_STYLES[view["verdict"]])
                yield line
    for name, reason in server["refused"].items():
        yield Text(one_line(f"not registered: {name}: {reason}", 1000), style="red")
    for problem in server["problems"]:
        yield Text(one_line(f"left out: {problem}", 500), style="yellow")


def _connected(server: Mapping[str, Any]) -> bool:
    return server["state"] == "ready" and not server["reason"]


def _facts(server: Mapping[str, Any]) -> Iterator[str]:
    who = f"{server['server_name'] or 'a server without a name'} {server['server_version']}".strip()
    yield f"handshake   {one_line(who, 300)} over {server['transport']}"
    offered = ", ".join(server["capabilities"]) or "nothing"
    changes = "announced" if server["announces_changes"] else "not announced"
    yield f"offers      {one_line(offered, 300)}; changes of its tools are {changes}"
    if server["instructions_chars"]:
        yield f"instructions {server['instructions_chars']:,} characters"
    times = (("start", "reach_ms"), ("initialize", "handshake_ms"), ("tools/list", "list_ms"))
    yield f"latency     {', '.join(f'{step} {server[field]:,.0f} ms' for step, field in times)}"


def _tools(tools: list[dict[str, Any]]) -> RenderableType:
    providers = [view["provider"] for view in tools[0]["providers"]]
    rows = [
        (
            tool["name"],
            *(Text(view["verdict"], style=_STYLES[view["verdict"]]) for view in tool["providers"]),
            tool["hidden_reason"] or "see it",
        )
        for tool in tools
    ]
    return table(("tool", *providers, "sandboxed jobs"), rows)

"""What was just added, as models will see it."""

from __future__ import annotations

import json
from typing import Any

from orchestrator.cli.client import OperatorClient
from orchestrator.cli.visible import one_line, visible


async def as_models_see(client: OperatorClient, owner: str) -> list[str]:
    """For each tool of an owner: who sees it, its description and schema, and what providers change."""
    tools: list[dict[str, Any]] = [one for one in await client.get("/api/v1/tools") if one["owner"] == owner]
    checked: dict[str, list[dict[str, Any]]] = await client.post(
        "/api/v1/tools/check", {"names": [one["name"] for one in tools]}
    )
    lines: list[str] = []
    for tool in tools:
        detail: dict[str, Any] = await client.get(f"/api/v1/tools/{tool['name']}")
        why = tool["hidden_reason"] + (f" ({tool['reason']})" if tool["reason"] else "")
        seen = "sandboxed jobs see it" if tool["hosted"] else f"sandboxed jobs do not see it: {why}"
        lines.append(one_line(f"{tool['name']} is registered; {seen}", 500))
        lines.append(f"  {one_line(tool['description'], 500)}")
        lines.append(f"  {visible(json.dumps(detail['parameters'], ensure_ascii=False))[:2_000]}")
        lines += [f"  {_verdict(one)}" for one in checked.get(tool["name"], [])]
    return lines


def _verdict(view: dict[str, Any]) -> str:
    notes = "; ".join([*view["refusals"], *view["changes"]])
    return one_line(f"{view['provider']}: {view['verdict']}" + (f": {notes}" if notes else ""), 500)

"""Tools are disabled and enabled through the operator API, for every caller (PD-46)."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import ROOT
from tests.support.orchestrator import Wired, problem, wired

CALC = ROOT / "wasm_tools" / "guests" / "calc" / "calc.wasm"


async def switch(orchestrator: Wired, name: str, action: str) -> dict[str, Any]:
    answer = await orchestrator.operator.post(f"/api/v1/tools/{name}/{action}", json={})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def shown(orchestrator: Wired, name: str) -> dict[str, Any]:
    return (await orchestrator.operator.get(f"/api/v1/tools/{name}")).json()


@pytest.mark.parametrize("name", ["echo", "network_inbox"])
async def test_a_disabled_tool_is_seen_and_called_by_nobody_until_it_is_enabled(
    name: str, orchestrator: Wired
) -> None:
    """HW-6: whatever source it comes from; also by hand, and by a job that runs already."""
    worker = await orchestrator.worker()
    off = await switch(orchestrator, name, "disable")
    assert (off["state"], off["hosted"], off["hidden_reason"]) == ("disabled", False, "disabled")
    catalog = (await worker.get("tools/catalog")).json()
    assert name not in [tool["name"] for tool in catalog["tools"]]
    refused = problem(await worker.execute(name, {}))
    assert (refused["code"], refused["reason"]) == ("tool_not_hosted", "disabled")
    by_hand = problem(await orchestrator.operator.post(f"/api/v1/tools/{name}/call", json={"params": {}}))
    assert (by_hand["code"], "an operator disabled it" in by_hand["detail"]) == ("tool_not_hosted", True)
    assert await switch(orchestrator, name, "disable") == off
    on = await switch(orchestrator, name, "enable")
    assert (on["state"], on["hosted"], on["hidden_reason"]) == ("active", True, "")
    again = (await worker.get("tools/catalog")).json()
    assert name in [tool["name"] for tool in again["tools"]]
    assert again["catalog_version"] != catalog["catalog_version"]


async def test_a_name_that_is_not_there_is_answered_with_the_nearest(orchestrator: Wired) -> None:
    for action in ("enable", "disable"):
        answer = await orchestrator.operator.post(f"/api/v1/tools/network_inbx/{action}", json={})
        refused = problem(answer)
        assert (answer.status_code, refused["code"]) == (404, "not_found")
        assert "did you mean 'network_inbox'?" in refused["detail"]


async def test_it_stays_disabled_over_a_restart_but_not_over_a_removal(home: Path) -> None:
    tools = home / "tools"
    tools.mkdir(parents=True)
    shutil.copy(CALC, tools)
    async with wired(home) as first:
        await switch(first, "calc", "disable")
    async with wired(home) as second:
        assert (await shown(second, "calc"))["hidden_reason"] == "disabled"
        assert (await second.operator.delete("/api/v1/tools/calc")).status_code == 204
        assert await second.stores.switches.disabled() == set()
    shutil.copy(CALC, tools)
    async with wired(home) as third:
        assert (await shown(third, "calc"))["hosted"] is True

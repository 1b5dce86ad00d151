"""What every `ToolSwitches` does (PD-46, PD-6)."""

from __future__ import annotations

import pytest

from orchestrator.adapters.db.database import Database
from orchestrator.adapters.db.tool_switches import SqlToolSwitches
from orchestrator.ports.tool_switches import ToolSwitches


@pytest.fixture
def switches(database: Database) -> ToolSwitches:
    return SqlToolSwitches(database)


async def test_what_is_disabled_is_remembered_once_and_forgotten_when_enabled(switches: ToolSwitches):
    assert await switches.disabled() == set()
    for tool in (("a", "x"), ("a", "x"), ("b", "x"), ("a", "demo:kit/places@1.0.0#f\u00fcnd\0")):
        await switches.disable(tool)
    await switches.enable(("b", "x"))
    await switches.enable(("b", "never"))
    assert await switches.disabled() == {("a", "x"), ("a", "demo:kit/places@1.0.0#f\u00fcnd\0")}


async def test_it_outlives_whoever_wrote_it(database_url: str):
    for expected in (set[tuple[str, str]](), {("calc.wasm", "calc")}):
        opened = await Database.open(database_url)
        assert await SqlToolSwitches(opened).disabled() == expected
        await SqlToolSwitches(opened).disable(("calc.wasm", "calc"))
        await opened.close()

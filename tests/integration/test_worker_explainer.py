"""Schema errors explained in a process that can be killed."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

from tests.support.deadline import within
from tests.support.open_processes import open_processes
from worker.explainer import SubprocessExplainer


async def test_the_violations_come_back_from_the_child() -> None:
    schema = {"type": "object", "properties": {"s": {"type": "string", "pattern": "^b+$"}}}
    found = await SubprocessExplainer(limit_s=20.0).explain(json.dumps(schema), '{"s": "a"}')
    assert found is not None
    assert [(one.pointer, one.rule) for one in found] == [("/s", "pattern")]


async def test_a_runaway_pattern_is_killed_in_time() -> None:
    """BR-084: no answer, and no process left that burns a core."""
    schema = {"properties": {"s": {"pattern": "^(a+)+$"}}}
    asked = SubprocessExplainer(limit_s=1.0).explain(json.dumps(schema), json.dumps({"s": "a" * 40 + "!"}))
    assert await within(60.0, asked) is None
    assert open_processes() == []


async def test_a_flood_of_refusals_starts_two_children_at_once() -> None:
    """The others wait for as long as a child may take, and go without an explanation then."""
    runaway = json.dumps({"properties": {"s": {"pattern": "^(a+)+$"}}})
    explainer = SubprocessExplainer(limit_s=1.0)
    asked = [explainer.explain(runaway, json.dumps({"s": "a" * 40 + "!"})) for _ in range(50)]
    most = 0
    work = asyncio.gather(*asked)
    while not work.done():
        most = max(most, children())
        await asyncio.wait({work}, timeout=0.02)
    assert await work == [None] * 50
    assert 1 <= most <= 2
    assert children() == 0


def children() -> int:
    """How many processes of ours explain something."""
    me = os.getpid()
    listed = Path(f"/proc/{me}/task/{me}/children").read_text().split()
    return sum("tool_registry.explain" in _command(pid) for pid in listed)


def _command(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


async def test_a_child_that_fails_is_no_answer() -> None:
    assert await SubprocessExplainer(limit_s=20.0).explain("{", "}") is None

"""Schema errors explained in a process that can be killed."""

from __future__ import annotations

import json
import time

from worker.explainer import SubprocessExplainer


async def test_the_violations_come_back_from_the_child() -> None:
    schema = {"type": "object", "properties": {"s": {"type": "string", "pattern": "^b+$"}}}
    found = await SubprocessExplainer(limit_s=20.0).explain(json.dumps(schema), '{"s": "a"}')
    assert found is not None
    assert [(one.pointer, one.rule) for one in found] == [("/s", "pattern")]


async def test_a_runaway_pattern_is_killed_in_time() -> None:
    """BR-084: no answer, and no process left that burns a core."""
    schema = {"properties": {"s": {"pattern": "^(a+)+$"}}}
    started = time.monotonic()
    found = await SubprocessExplainer(limit_s=1.0).explain(
        json.dumps(schema), json.dumps({"s": "a" * 40 + "!"})
    )
    assert found is None
    assert time.monotonic() - started < 5.0


async def test_a_child_that_fails_is_no_answer() -> None:
    assert await SubprocessExplainer(limit_s=20.0).explain("{", "}") is None

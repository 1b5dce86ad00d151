"""DC-1, PD-3: schemas made to hurt, listed by a real server."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import anyio

from tests.fakes import mcp_servers as fakes
from tests.support.mcp import CONTEXT, running
from tool_registry.clock import Clock
from tool_registry.errors import CallError
from tool_registry.execution import Surroundings, ToolExecutor
from tool_registry.mcp.status import ServerState
from worker.clock import SystemClock

LAG_S = 1.5


async def test_a_bomb_costs_only_itself_and_holds_nobody_up():
    """BR-055, BR-084, BR-086: each is refused with its reason, the plain ones work, the other server answers."""
    entries = {"s": fakes.command(fakes.Bombs), "other": fakes.command(fakes.Server)}
    async with running(entries, wait=False) as found:
        await found.settled("other")
        lag_s = 0.0

        async def watch() -> None:
            nonlocal lag_s
            while True:
                before = anyio.current_time()
                await asyncio.sleep(0.01)
                lag_s = max(lag_s, anyio.current_time() - before)

        watching = asyncio.create_task(watch())
        await found.settled("s")
        watching.cancel()
        assert (await found.call("echo", {"text": "here"}, "other")).result == "here"
        registered = {entry.name for entry in found.registry.entries()}
        assert {"s_first", "s_last", "s_pattern", "s_promise", "other_echo"} <= registered
        bad = {"deep", "wide", "long", "unclosed", "file", "no_schema"}
        assert not {f"s_{name}" for name in bad} & registered
        problems = found.status("s").problems
        for name in bad:
            assert any(f"s_{name}" in problem or f"'{name}'" in problem for problem in problems), name
        assert sum(len(problem) for problem in problems) < 10_000
        assert (await found.call("last")).result == "last"
        assert lag_s < LAG_S


async def test_a_bomb_that_was_taken_in_answers_in_time():
    """BR-084: a runaway pattern, doubling references and a schema that is itself."""
    clock: Clock = SystemClock()
    async with running({"s": fakes.command(fakes.Bombs)}) as found:
        executor = ToolExecutor(found.registry, Surroundings(clock=clock))
        given = {
            "s_pattern": {"a": "a" * 36 + "!"},
            "s_doubling": {"a": {"a": {"b": 1}}},
            "s_itself": {"x": 1},
            "s_promise": {},
        }
        for name in given.keys() & {entry.name for entry in found.registry.entries()}:
            with anyio.fail_after(5):
                assert len(await _answer(executor, name, given[name])) < 4_000


async def _answer(executor: ToolExecutor, name: str, params: dict[str, Any]) -> str:
    try:
        return json.dumps((await executor.execute(name, params, CONTEXT)).result)
    except CallError as error:
        return error.message


async def test_a_list_that_nobody_can_parse_fails_its_server_only():
    """BR-066: a hundred thousand brackets are no message; the reason says what came."""
    entries = {
        "s": {**fakes.command(fakes.Abyss), "start_timeout_s": 3},
        "other": fakes.command(fakes.Server),
    }
    async with running(entries, wait=False) as found:
        await found.settled("other")
        await found.settled("s", ServerState.FAILED)
        assert "did not answer `tools/list`" in found.status("s").reason
        assert "no JSON-RPC messages" in found.status("s").reason
        assert (await found.call("echo", {"text": "here"}, "other")).result == "here"

"""A call ends at its limit, whatever its guest waits for, and the event loop never waits for it."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest

from tests.fakes.wasm_host import BlockingHost, EnteredHost
from tests.support.wasm.guests import HTTP, LOOP, LOOP_AFTER_A_CALL, Source
from tests.support.wasm.workshop import context, no_thread_is_stuck, workshop
from tool_registry.errors import Outcome, ToolFailed, ToolTimeout, ToolUnavailable
from tool_registry.tool import Tool
from wasm_tools.limits import Limits

SLEEP = Source(
    world="sleeps",
    imports="""(import "wasi:clocks/monotonic-clock@0.2.0" "subscribe-duration"
      (func $subscribe (param i64) (result i32)))
      (import "wasi:io/poll@0.2.0" "[method]pollable.block" (func $block (param i32)))""",
    execute="(call $block (call $subscribe (i64.const {}))) (call $digit (i32.const 1))",
)


async def outcome(tool: Tool) -> BaseException | str:
    try:
        return (await tool.execute({}, context())).result
    except ToolTimeout as error:
        return error


async def test_twenty_endless_loops_end_at_their_limit_and_hold_nothing(tmp_path: Path) -> None:
    """BR-088: each ends as a timeout, the loop stays responsive, a good call then runs at once."""
    async with workshop(tmp_path) as shop:
        loop = await shop.tool(LOOP, limits=Limits(timeout_s=1), name="loop")
        echo = await shop.tool(Source(), name="echo")
        longest_s, ended = 0.0, asyncio.Event()

        async def heartbeat() -> None:
            nonlocal longest_s
            while not ended.is_set():
                before = time.monotonic()
                await asyncio.sleep(0.01)
                longest_s = max(longest_s, time.monotonic() - before)

        beating = asyncio.create_task(heartbeat())
        started = time.monotonic()
        results = await asyncio.gather(*(outcome(loop) for _ in range(20)))
        took_s = time.monotonic() - started
        ended.set()
        await beating
        assert all(isinstance(result, ToolTimeout) for result in results)
        assert 1 <= took_s < 15
        assert longest_s < 10, "one after another they would take 20 s"
        assert (await echo.execute({}, context())).result == "{}"
        assert shop.runtime.stuck == 0


async def test_a_guest_stuck_in_a_host_call_times_out_for_its_caller(tmp_path: Path) -> None:
    """BR-090: the caller gets its timeout, the thread is counted until it comes back, others go on."""
    host = BlockingHost()
    async with workshop(tmp_path) as shop:
        stuck = await shop.tool(HTTP, host=host, limits=Limits(timeout_s=0.3), name="stuck")
        echo = await shop.tool(Source(), name="echo")
        with pytest.raises(ToolTimeout, match="host call") as caught:
            await stuck.execute({}, context())
        assert caught.value.cause == "wasm_timeout"
        assert shop.runtime.stuck == 1
        assert (await echo.execute({}, context())).result == "{}"
        host.release.set()
        await no_thread_is_stuck(shop.runtime)


@pytest.mark.parametrize("nanoseconds", [60_000_000_000, 2**63 - 1])
async def test_a_sleep_beyond_the_limit_is_a_timeout_and_holds_no_thread(
    tmp_path: Path, nanoseconds: int
) -> None:
    """BR-090: WASI's own wait would outlive the deadline; it is never entered."""
    source = Source(world=SLEEP.world, imports=SLEEP.imports, execute=SLEEP.execute.format(nanoseconds))
    async with workshop(tmp_path) as shop:
        tool = await shop.tool(source, limits=Limits(timeout_s=2))
        started = time.monotonic()
        assert "asked to sleep beyond its time limit of 2 s" in str(await outcome(tool))
        assert time.monotonic() - started < 40
        assert shop.runtime.stuck == 0


async def test_when_every_thread_is_stuck_calls_are_turned_away(tmp_path: Path) -> None:
    """BR-090: leftovers are bounded; beyond them a call is refused at once, as not run."""
    host = BlockingHost()
    async with workshop(tmp_path, threads=2) as shop:
        tool = await shop.tool(HTTP, host=host, limits=Limits(timeout_s=0.3))
        await asyncio.gather(outcome(tool), outcome(tool))
        assert shop.runtime.stuck == 2
        with pytest.raises(ToolUnavailable) as caught:
            await tool.execute({}, context())
        assert caught.value.outcome is Outcome.NOT_RUN
        host.release.set()


async def test_a_call_that_finds_no_thread_in_its_time_did_not_run(tmp_path: Path) -> None:
    host = BlockingHost()
    async with workshop(tmp_path, threads=1) as shop:
        holding = await shop.tool(HTTP, host=host, limits=Limits(timeout_s=20), name="holding")
        waiting = await shop.tool(Source(), limits=Limits(timeout_s=0.2), name="waiting")
        task = asyncio.create_task(holding.execute({}, context()))
        await host.wait()
        with pytest.raises(ToolUnavailable, match="busy"):
            await waiting.execute({}, context())
        host.release.set()
        assert (await task).result == "late"


async def test_a_cancelled_call_ends_its_guest(tmp_path: Path) -> None:
    """BR-088: cancelling frees the thread long before the limit."""
    async with workshop(tmp_path, threads=1) as shop:
        entered = EnteredHost()
        loop = await shop.tool(LOOP_AFTER_A_CALL, host=entered, name="loop")
        echo = await shop.tool(Source(), name="echo")
        task = asyncio.create_task(loop.execute({}, context()))
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(10):  # its only thread is free again, 30 s before the limit
            assert (await echo.execute({}, context())).result == "{}"
        assert shop.runtime.stuck == 0


async def test_the_callers_deadline_is_kept_when_it_comes_first(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        tool = await shop.tool(LOOP)
        deadline = shop.runtime.clock.monotonic() + 0.2
        with pytest.raises(ToolTimeout):
            await tool.execute({}, context(deadline=deadline))
        with pytest.raises(ToolTimeout):
            await tool.execute({}, context(deadline=deadline))


async def test_a_start_function_that_loops_is_refused_at_registration(tmp_path: Path) -> None:
    """BR-088: code that runs while an instance is made is under the limit too."""
    looping = Source(declarations="(func $start (loop $l (br $l))) (start $start)")
    async with workshop(tmp_path) as shop:
        offer = await shop.offer(looping)
        assert offer.state == "failed_to_load"
        assert "time limit" in offer.reason


async def test_closing_ends_running_calls_and_the_ticker(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        entered = EnteredHost()
        loop = await shop.tool(LOOP_AFTER_A_CALL, host=entered)
        task = asyncio.create_task(loop.execute({}, context()))
        await entered.wait()
    with pytest.raises(ToolFailed, match="cancelled"):
        await task
    assert not [thread for thread in threading.enumerate() if thread.name == "wasm-ticker"]

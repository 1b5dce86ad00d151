"""Everything a guest can do wrong, all at once: each is told apart, and nothing is left behind (BR-088, BR-093)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.integration.test_wasm_failures import RECURSION, STDERR
from tests.integration.test_wasm_time import SLEEP
from tests.support.wasm.guests import HTTP, LOOP, Source
from tests.support.wasm.workshop import Workshop, context, no_thread_is_stuck, workshop
from tool_registry.context import ToolContext
from tool_registry.errors import CallError, InvalidParams, ToolFailed
from tool_registry.execution import Surroundings, ToolExecutor
from tool_registry.registry import ToolRegistry
from tool_registry.tool import Tool
from wasm_tools.causes import HINTS, Cause
from wasm_tools.host import HttpRequest, HttpResponse, RefusingHost
from wasm_tools.limits import Limits

FLOOD = Source(
    world="complains",
    imports=STDERR,
    memory="3",
    execute="""(loop $more
        (call $write (call $stderr) (i32.const 131072) (i32.const 4096) (i32.const 64)) (br $more))
      unreachable""",
)
ALLOCATES = Source(
    execute="""(loop $more
        (br_if $more (i32.ne (i32.const -1) (memory.grow (i32.const 16)))))
      (call $answer (i32.const 131072) (i32.sub (i32.shl (memory.size) (i32.const 16)) (i32.const 131072)))"""
)
GROWS_ITS_TABLE = Source(
    declarations="(table $t 1 funcref)",
    execute="""(loop $more
        (br_if $more (i32.ne (i32.const -1) (table.grow $t (ref.null func) (i32.const 1000)))))
      (call $digit (i32.le_u (table.size $t) (i32.const 20000)))""",
)
CROWD: dict[str, tuple[Source, str]] = {
    "spins": (LOOP, "wasm_timeout"),
    "sleeps": (
        Source(world=SLEEP.world, imports=SLEEP.imports, execute=SLEEP.execute.format(10**11)),
        "wasm_timeout",
    ),
    "floods": (FLOOD, "wasm_timeout"),
    "recurses": (
        Source(execute="(call $deeper (i32.const 0))", declarations=RECURSION),
        "wasm_stack_overflow",
    ),
    "traps": (Source(execute="unreachable"), "wasm_trap"),
    "allocates": (ALLOCATES, "wasm_limit"),
    "answers_1_gb": (
        Source(execute="(call $answer (i32.const 0) (i32.const 0x40000000))"),
        "wasm_bad_result",
    ),
    "answers_nothing": (Source(execute="(i32.const 0)"), "wasm_bad_result"),
}
SAYS_ERROR = Source(
    execute="""(i32.store (i32.const 28) (i32.const 1))
      (i32.store (i32.const 32) (local.get $params)) (i32.store (i32.const 36) (local.get $len)) (i32.const 16)"""
)


async def cause(tool: Tool) -> str:
    try:
        return (await tool.execute({}, context())).result
    except CallError as error:
        return str(error.cause)


@pytest.mark.timeout(240)
async def test_a_crowd_of_hostile_guests_is_told_apart_and_gone_afterwards(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        limits = Limits(timeout_s=3)
        tools = {
            name: await shop.tool(source, name=name, limits=limits) for name, (source, _) in CROWD.items()
        }
        echo = await shop.tool(Source(), name="echo")
        names = [name for name in CROWD for _ in range(3)]
        results = await asyncio.gather(*(cause(tools[name]) for name in names))
        expected = [CROWD[name][1] for name in names]
        assert dict(zip(names, results, strict=True)) == dict(zip(names, expected, strict=True))
        assert results == expected
        assert (await echo.execute({}, context())).result == "{}"
        await no_thread_is_stuck(shop.runtime)


async def test_a_table_grows_to_its_limit_and_not_beyond(tmp_path: Path) -> None:
    """BR-091: the guest is told -1, and goes on."""
    async with workshop(tmp_path) as shop:
        tool = await shop.tool(GROWS_ITS_TABLE)
        assert (await tool.execute({}, context())).result == "1"


async def test_a_guest_whose_schema_changes_is_held_to_the_one_that_was_read(tmp_path: Path) -> None:
    """The schema is read once; what the guest would say later reaches nobody."""
    lies = Source(
        schema='{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}',
        declarations="(global $asked (mut i32) (i32.const 0))",
        before_schema="""(if (global.get $asked) (then unreachable))
          (global.set $asked (i32.const 1))""",
        execute="(call $digit (i32.const 1))",
    )
    async with workshop(tmp_path) as shop:
        execute, _ = await registered(shop, lies)
        with pytest.raises(InvalidParams) as caught:
            await execute.execute("guest", {"text": 5}, ToolContext("j", "c"))
        assert [one.pointer for one in caught.value.violations] == ["/text"]
        assert (await execute.execute("guest", {"text": "a"}, ToolContext("j", "c"))).result == "1"


async def registered(
    shop: Workshop, source: Source, host: RefusingHost | None = None
) -> tuple[ToolExecutor, Tool]:
    offer = await shop.offer(source, host=host)
    registry = ToolRegistry()
    registry.replace("guest.wasm", [offer])
    return ToolExecutor(registry, Surroundings(shop.runtime.clock)), offer.tool


async def test_the_guests_own_words_reach_the_model_as_a_failed_result(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        execute, _ = await registered(shop, SAYS_ERROR)
        output = await execute.execute("guest", {"text": "no such city"}, ToolContext("j", "c"))
    assert (output.is_error, output.result) == (True, '{"text":"no such city"}')


async def test_a_bad_call_is_told_what_to_correct_and_never_another_schema(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        execute, tool = await registered(shop, SAYS_ERROR)
        with pytest.raises(InvalidParams) as caught:
            await execute.execute("guest", {"text": 5}, ToolContext("j", "c"))
        said = f"{caught.value.message} {caught.value.hint}"
        assert "do not fit its schema" in said
        assert "properties" not in said
        assert [one.pointer for one in caught.value.violations] == ["/text"]
        assert tool.definition.parameters_json == Source().schema, "the advertised one is as it was"


async def test_every_cause_but_a_cancellation_has_a_next_step_that_quotes_no_schema() -> None:
    assert set(Cause) - set(HINTS) == {Cause.CANCELLED}
    assert not [hint for hint in HINTS.values() if "{" in hint or '"' in hint]


async def test_a_host_that_fails_is_refused_and_its_words_stay_here(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Failing(RefusingHost):
        def http_request(self, request: HttpRequest, remaining_s: float) -> HttpResponse:
            raise RuntimeError("the inner words")

    async with workshop(tmp_path) as shop:
        execute, _ = await registered(shop, HTTP, Failing())
        with pytest.raises(ToolFailed) as caught:
            await execute.execute("guest", {}, ToolContext("j", "c"))
    assert (caught.value.cause, caught.value.hint) == ("host_refused", HINTS[Cause.HOST_REFUSED])
    assert "inner" not in str(caught.value)
    assert "the inner words" in caplog.text

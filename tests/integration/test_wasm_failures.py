"""What a guest can do wrong in a call, and what its caller is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.support.wasm.guests import HTTP, Source
from tests.support.wasm.workshop import Workshop, context, workshop
from tool_registry.errors import Outcome, ToolFailed, ToolTimeout
from wasm_tools.limits import Limits

RECURSION = """(func $deeper (param i32) (result i32)
  (i32.add (i32.const 1) (call $deeper (i32.add (i32.const 1) (local.get 0)))))"""
TABLE = "(table $t 2 funcref) (type $f (func (result i32))) (func $other) (elem (i32.const 1) $other)"
STDERR = """(import "wasi:cli/stderr@0.2.0" "get-stderr" (func $stderr (result i32)))
(import "wasi:io/streams@0.2.0" "[method]output-stream.blocking-write-and-flush"
  (func $write (param i32 i32 i32 i32)))"""
COMPLAIN = "(call $write (call $stderr) (local.get $params) (local.get $len) (i32.const 64)) unreachable"
EXIT = '(import "wasi:cli/exit@0.2.0" "exit" (func $exit (param i32)))'


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncGenerator[Workshop]:
    async with workshop(tmp_path) as made:
        yield made


async def failure(shop: Workshop, source: Source, *, limits: Limits = Limits()) -> ToolFailed:  # noqa: B008
    tool = await shop.tool(source, limits=limits)
    with pytest.raises(ToolFailed) as caught:
        await tool.execute({"text": "token"}, context())
    message = str(caught.value)
    assert "\n" not in message
    assert "0x" not in message, "no address, no backtrace"
    assert caught.value.outcome is Outcome.FAILED
    return caught.value


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("unreachable", "unreachable"),
        ("(i32.div_u (i32.const 1) (i32.const 0))", "divided by zero"),
        ("(i32.div_s (i32.const -2147483648) (i32.const -1))", "overflowed"),
        ("(i32.trunc_f32_s (f32.convert_i32_u (i32.const -1)))", "overflowed"),
        ("(i32.trunc_f32_s (f32.const nan))", "does not fit"),
        ("(i32.load (i32.const -16))", "memory out of bounds"),
        ("(call_indirect $t (type $f) (i32.const 0))", "empty table entry"),
        ("(call_indirect $t (type $f) (i32.const 1))", "wrong type"),
        ("(call_indirect $t (type $f) (i32.const 9))", "table out of bounds"),
    ],
)
async def test_a_trap_is_named_in_one_line(shop: Workshop, body: str, said: str) -> None:
    """BR-093: the kind of trap reaches the model; no backtrace does."""
    error = await failure(shop, Source(execute=body, declarations=TABLE))
    assert error.cause == "wasm_trap"
    assert said in str(error)


async def test_a_stack_overflow_is_told_from_a_crash(shop: Workshop) -> None:
    """BR-093: endless recursion ends the call, not the process."""
    error = await failure(shop, Source(execute="(call $deeper (i32.const 0))", declarations=RECURSION))
    assert error.cause == "wasm_stack_overflow"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("(i32.store8 (i32.const 48) (i32.const 255)) (call $answer (i32.const 48) (i32.const 1))", "UTF-8"),
        ("(call $answer (i32.const 48) (i32.const 0x40000000))", "outside its memory"),
        ("(i32.const -4)", "outside its memory"),
        ("(i32.const 17)", "not aligned"),
        ("(i32.store (i32.const 16) (i32.const 77)) (i32.const 16)", "variant that does not exist"),
        ("(i32.const 0)", "neither output nor error"),
        (
            "(drop (call $digit (i32.const 1))) (i32.store (i32.const 28) (i32.const 1)) (i32.const 16)",
            "both output and error",
        ),
    ],
)
async def test_an_answer_that_breaks_the_contract_is_a_bad_result(
    shop: Workshop, body: str, said: str
) -> None:
    error = await failure(shop, Source(execute=body))
    assert error.cause == "wasm_bad_result"
    assert said in str(error)


async def test_an_answer_over_its_limit_is_refused_with_both_sizes(shop: Workshop) -> None:
    zeros = Source(memory="40", execute="(call $answer (i32.const 131072) (i32.const 2000000))")
    error = await failure(shop, zeros)
    assert error.cause == "wasm_limit"
    assert "2,000,000" in str(error)
    assert "1,048,576" in str(error)


@pytest.mark.parametrize(("argument", "code"), [("0", 0), ("1", 1)])
async def test_a_guest_that_exits_failed_with_its_code(shop: Workshop, argument: str, code: int) -> None:
    """BR-093: an exit, whichever code, gives no answer; the code is named."""
    body = f"(call $exit (i32.const {argument})) unreachable"
    error = await failure(shop, Source(world="exits", imports=EXIT, execute=body))
    assert error.cause == "wasm_exit"
    assert f"exit code {code}" in str(error)


async def test_what_a_guest_wrote_before_it_exits_is_part_of_the_message(shop: Workshop) -> None:
    """BR-093: a runtime writes its reason there; the executor masks secrets in it, as in every message."""
    complain = COMPLAIN.removesuffix("unreachable") + "(call $exit (i32.const 1)) unreachable"
    source = Source(world="complains-and-exits", imports=STDERR + EXIT, execute=complain)
    error = await failure(shop, source)
    assert error.cause == "wasm_exit"
    assert str(error).endswith('exit code 1 instead of answering. It wrote: {"text":"token"}')


async def test_the_last_line_on_stderr_is_part_of_the_message(shop: Workshop) -> None:
    error = await failure(shop, Source(world="complains", imports=STDERR, execute=COMPLAIN))
    assert error.cause == "wasm_trap"
    assert str(error).endswith('It wrote: {"text":"token"}')


async def test_a_runtime_that_says_out_of_memory_is_believed(shop: Workshop) -> None:
    tool = await shop.tool(Source(world="complains", imports=STDERR, execute=COMPLAIN))
    with pytest.raises(ToolFailed) as caught:
        await tool.execute({"text": "MemoryError"}, context())
    assert caught.value.cause == "wasm_out_of_memory"


async def test_a_full_garbage_collected_heap_is_out_of_memory(shop: Workshop) -> None:
    """BR-091: that heap is under the memory limit too."""
    keeps = Source(
        declarations="(type $outer (array (mut (ref null any)))) (type $inner (array (mut i32)))",
        execute="""(local $kept (ref null $outer)) (local $i i32)
          (local.set $kept (array.new_default $outer (i32.const 1000)))
          (loop $more
            (array.set $outer (local.get $kept) (local.get $i) (array.new_default $inner (i32.const 1000000)))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br_if $more (i32.lt_u (local.get $i) (i32.const 1000))))
          (call $digit (i32.const 1))""",
    )
    error = await failure(shop, keeps, limits=Limits(memory_bytes=16 << 20))
    assert error.cause == "wasm_out_of_memory"


async def test_handing_the_host_a_huge_list_breaks_the_contract(shop: Workshop) -> None:
    headers = """(call $http (i32.const 4096) (i32.const 1) (i32.const 4096) (i32.const 1)
      (i32.const 131072) (i32.const 3000000) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
      (i32.const 0) (i32.const 256)) (call $digit (i32.const 1))"""
    error = await failure(shop, Source(memory="900", imports=HTTP.imports, execute=headers))
    assert error.cause == "wasm_bad_result"
    assert "128 MiB" in str(error)


async def test_the_next_call_works_on_a_fresh_instance(shop: Workshop) -> None:
    """BR-093: a crash leaves nothing behind, neither does a success."""
    counting = Source(
        declarations="(global $calls (mut i32) (i32.const 0))",
        execute="""(global.set $calls (i32.add (global.get $calls) (i32.const 1)))
          (if (i32.gt_u (local.get $len) (i32.const 30)) (then unreachable))
          (call $digit (global.get $calls))""",
    )
    tool = await shop.tool(counting)
    with pytest.raises(ToolFailed):
        await tool.execute({"text": "a text that is too long for it"}, context())
    for _ in range(2):
        assert (await tool.execute({"text": "short"}, context())).result == "1"


async def test_the_guests_own_error_is_an_output_not_a_failure(shop: Workshop) -> None:
    says_error = Source(
        execute="""(i32.store (i32.const 28) (i32.const 1))
          (i32.store (i32.const 32) (local.get $params)) (i32.store (i32.const 36) (local.get $len))
          (i32.const 16)"""
    )
    output = await (await shop.tool(says_error)).execute({"text": "no such city"}, context())
    assert output.is_error
    assert output.result == '{"text":"no such city"}'


async def test_memory_over_the_limit_is_refused_to_the_guest(shop: Workshop) -> None:
    """BR-091: growing beyond the limit answers -1, growing up to it works."""
    grows = "(call $digit (i32.eq (i32.const -1) (memory.grow (i32.const {}))))"
    limits = Limits(memory_bytes=16 << 20)
    too_much = await shop.tool(Source(execute=grows.format(60_000)), limits=limits, name="much")
    enough = await shop.tool(Source(execute=grows.format(254)), limits=limits, name="enough")
    assert (await too_much.execute({}, context())).result == "1"
    assert (await enough.execute({}, context())).result == "0"


async def test_ten_guests_that_grow_at_once_stay_under_their_limits(shop: Workshop) -> None:
    """BR-091: each gets its 256 pages, touched, and not one more."""
    grows = Source(
        execute="""(loop $more
            (if (i32.ne (i32.const -1) (memory.grow (i32.const 1)))
              (then (i32.store (i32.sub (i32.shl (memory.size) (i32.const 16)) (i32.const 4)) (i32.const 1))
                (br $more))))
          (call $digit (i32.eq (memory.size) (i32.const 256)))"""
    )
    tool = await shop.tool(grows, limits=Limits(memory_bytes=16 << 20))
    outputs = await asyncio.gather(*(tool.execute({}, context()) for _ in range(10)))
    assert [output.result for output in outputs] == ["1"] * 10


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (Source(memory="300"), "18.8 MiB of memory to start"),
        (Source(declarations="(table 4000000000 funcref)"), "table minimum size"),
        (Source(declarations="(table 1 funcref)" * 9), "table count too high"),
        (Source(declarations="(memory 1)" * 4), "memory count too high"),
        (Source(imports=HTTP.imports), "instance count too high"),
    ],
)
async def test_asking_for_too_much_at_the_start_is_refused_at_registration(
    shop: Workshop, source: Source, said: str
) -> None:
    """BR-091: initial memory and tables are held to the limits too."""
    offer = await shop.offer(source, limits=Limits(memory_bytes=16 << 20, instances=2))
    assert offer.state == "failed_to_load"
    assert said in offer.reason


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            Source(
                world="complains",
                imports=STDERR,
                execute="(loop $more (drop (call $stderr)) (br $more)) unreachable",
            ),
            "handle limit exceeded",
        ),
        (
            Source(
                world="rolls-dice",
                imports='(import "wasi:random/random@0.2.0" "get-random-bytes" (func $dice (param i64 i32)))',
                execute="(call $dice (i64.const 0x100000000) (i32.const 256)) unreachable",
            ),
            "exceeds limit",
        ),
    ],
)
async def test_what_a_guest_makes_the_host_hold_is_limited_too(
    shop: Workshop, source: Source, said: str
) -> None:
    """BR-091: streams without end and gigabytes of random bytes lie outside of the guest's own memory."""
    error = await failure(shop, source)
    assert error.cause == "wasm_limit"
    assert said in str(error)


async def test_a_sidecars_lower_limit_holds_at_registration(shop: Workshop) -> None:
    """BR-091: a tool that passes registration can start under its own limits."""
    offer = await shop.offer(Source(memory="20"), sidecar={"version": 1, "limits": {"memory_bytes": 1 << 20}})
    assert offer.state == "failed_to_load"
    assert "memory" in offer.reason


async def test_a_timeout_is_its_own_error(shop: Workshop) -> None:
    """BR-088: what a timed out call did is unknown, and its error says so."""
    tool = await shop.tool(Source(execute="(loop $l (br $l)) unreachable"), limits=Limits(timeout_s=0.2))
    with pytest.raises(ToolTimeout, match=r"time limit of 0\.2 s") as caught:
        await tool.execute({}, context())
    assert caught.value.cause == "wasm_timeout"
    assert caught.value.outcome is Outcome.UNKNOWN

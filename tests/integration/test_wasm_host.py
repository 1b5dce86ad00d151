"""What crosses between guest and host, and what never does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.wasm_host import AnsweringHost
from tests.support.wasm.guests import HTTP, Source
from tests.support.wasm.workshop import Workshop, context, workshop
from tool_registry.errors import ToolFailed
from wasm_tools.host import HostDenied, HttpRequest, HttpResponse
from wasm_tools.limits import Limits

LOG = '(import "portside:tool/host@1.0.0" "log" (func $log (param i32 i32 i32)))'


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncGenerator[Workshop]:
    async with workshop(tmp_path) as made:
        yield made


async def test_an_http_request_is_refused_in_words_the_guest_can_read(shop: Workshop) -> None:
    output = await (await shop.tool(HTTP)).execute({}, context())
    assert output.result == "not granted: this tool may not send HTTP requests"


async def test_calling_another_tool_is_refused_in_words_the_guest_can_read(shop: Workshop) -> None:
    invoke = Source(
        imports="""(import "portside:tool/host@1.0.0" "tool-invoke"
          (func $invoke (param i32 i32 i32 i32 i32)))""",
        execute="""
          (call $invoke (i32.const 4096) (i32.const 1) (i32.const 4096) (i32.const 1) (i32.const 256))
          (if (i32.eqz (i32.load8_u (i32.const 256))) (then unreachable))
          (call $answer (i32.load (i32.const 260)) (i32.load (i32.const 264)))""",
    )
    output = await (await shop.tool(invoke)).execute({}, context())
    assert output.result == "not granted: this tool may not call other tools"


async def test_no_secret_exists_and_no_file_is_there(shop: Workshop) -> None:
    asks = Source(
        imports="""
          (import "portside:tool/host@1.0.0" "secret-exists" (func $secret (param i32 i32) (result i32)))
          (import "portside:tool/host@1.0.0" "workspace-read" (func $read (param i32 i32 i32)))""",
        execute="""(call $read (i32.const 4096) (i32.const 4) (i32.const 256))
          (call $digit (i32.add (call $secret (i32.const 4096) (i32.const 4)) (i32.load (i32.const 256))))""",
    )
    assert (await (await shop.tool(asks)).execute({}, context())).result == "0"


async def test_the_clock_is_the_runtimes(shop: Workshop) -> None:
    asks = Source(
        imports='(import "portside:tool/host@1.0.0" "now-millis" (func $now (result i64)))',
        execute="(call $digit (i64.gt_u (call $now) (i64.const 1700000000000)))",
    )
    assert (await (await shop.tool(asks)).execute({}, context())).result == "1"


async def test_params_and_context_reach_the_guest_as_json(shop: Workshop) -> None:
    tells = Source(execute="(call $answer (local.get $context) (local.get $context_len))")
    output = await (await shop.tool(tells)).execute({}, context(job_id="j1", call_id="c1"))
    assert output.result == '{"job_id": "j1", "call_id": "c1"}'
    echo = await shop.tool(Source(), name="echo")
    output = await echo.execute({"text": "h\u00e9 \ud800"}, context())
    assert output.result == r'{"text":"h\u00e9 \ud800"}'


@pytest.mark.parametrize(
    "raised",
    [ValueError, SystemExit, KeyboardInterrupt, asyncio.CancelledError, GeneratorExit, MemoryError],
)
async def test_nothing_a_host_function_raises_crosses_into_the_guest(
    shop: Workshop, raised: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    """An exception that is no Exception would end the process; any other would land in a global."""

    def answer(_request: HttpRequest) -> HttpResponse:
        raise raised("inner words")

    tool = await shop.tool(HTTP, host=AnsweringHost(answer))
    with caplog.at_level(logging.ERROR), pytest.raises(ToolFailed) as caught:
        await tool.execute({}, context())
    assert caught.value.cause == "host_refused"
    assert "inner words" not in str(caught.value), "a bug's text is for the operator's log"
    assert "inner words" in caplog.text


@pytest.mark.parametrize(
    "nonsense",
    [
        None,
        "text",
        HttpResponse(70_000, (), ""),
        HttpResponse(200, (), "\ud800"),
        HttpResponse(200, (("name", 5),), ""),  # type: ignore[arg-type]
        HttpResponse(200, (), b"bytes"),  # type: ignore[arg-type]
    ],
)
async def test_a_host_value_of_the_wrong_type_ends_the_call_alone(shop: Workshop, nonsense: Any) -> None:
    tool = await shop.tool(HTTP, host=AnsweringHost(lambda _request: nonsense))
    with pytest.raises(ToolFailed) as caught:
        await tool.execute({}, context())
    assert caught.value.cause == "host_refused"


@pytest.mark.parametrize(
    ("headers", "url_bytes", "said"),
    [
        (500_000, 2, "more than 5,000 values in one call"),
        (0, 17 << 20, "more than 16,777,216 bytes in one call"),
    ],
)
async def test_more_than_a_host_function_reads_is_a_limit_and_is_never_read(
    shop: Workshop, headers: int, url_bytes: int, said: str
) -> None:
    """BR-088: half a million headers would take seconds to read, beyond any deadline."""
    asks = Source(
        imports=HTTP.imports,
        memory="400",
        execute=f"""(call $http (i32.const 4096) (i32.const 1) (i32.const 131072) (i32.const {url_bytes})
          (i32.const 131072) (i32.const {headers}) (i32.const 0) (i32.const 0) (i32.const 0)
          (i32.const 0) (i32.const 0) (i32.const 256)) (call $digit (i32.const 1))""",
    )
    asked: list[HttpRequest] = []

    def answer(request: HttpRequest) -> HttpResponse:
        asked.append(request)
        return HttpResponse(200, (), "")

    tool = await shop.tool(asks, host=AnsweringHost(answer))
    with pytest.raises(ToolFailed, match=said) as caught:
        await tool.execute({}, context())
    assert caught.value.cause == "wasm_limit"
    assert asked == []


async def test_a_request_reaches_the_host_as_the_guest_made_it_and_the_answer_comes_back(
    shop: Workshop,
) -> None:
    """Every kind of value of the interface, there and back."""
    asked: list[HttpRequest] = []

    def answer(request: HttpRequest) -> HttpResponse:
        asked.append(request)
        return HttpResponse(204, (("a", "\u00e9"), ("b", "")), "\U0001f600 body")

    asks = Source(
        imports=HTTP.imports,
        declarations=r"""(data (i32.const 512) "PUT\c3\a9nv")
          (data (i32.const 600) "\00\02\00\00\03\00\00\00\03\02\00\00\02\00\00\00")""",
        execute="""(call $http (i32.const 512) (i32.const 3) (i32.const 515) (i32.const 2)
          (i32.const 600) (i32.const 1) (i32.const 1) (i32.const 517) (i32.const 2)
          (i32.const 1) (i32.const 1500) (i32.const 256))
          (if (i32.or (i32.load8_u (i32.const 256)) (i32.ne (i32.load16_u (i32.const 260)) (i32.const 204)))
            (then unreachable))
          (if (i32.ne (i32.load (i32.const 268)) (i32.const 2)) (then unreachable))
          (call $answer (i32.load (i32.const 272)) (i32.load (i32.const 276)))""",
    )
    output = await (await shop.tool(asks, host=AnsweringHost(answer))).execute({}, context())
    assert asked == [HttpRequest("PUT", "\u00e9", (("PUT", "\u00e9"),), "nv", 1_500)]
    assert output.result == "\U0001f600 body"


async def test_failures_of_calls_on_other_threads_never_mix(shop: Workshop) -> None:
    """wasmtime-py keeps the last exception of the whole process; a call only ever sees its own."""

    def answer(request: HttpRequest) -> HttpResponse:
        if "deny" in request.url:
            raise HostDenied(request.url)
        if "raise" in request.url:
            raise RuntimeError(request.url)
        return HttpResponse(200, (), request.url)

    tool = await shop.tool(HTTP, host=AnsweringHost(answer))

    async def call(number: int) -> None:
        kind = ("deny", "raise", "give")[number % 3]
        params = {"text": f"{kind} {number}"}
        if kind == "raise":
            with pytest.raises(ToolFailed, match="a host function failed"):
                await tool.execute(params, context())
        else:
            output = await tool.execute(params, context())
            assert output.result == f'{{"text":"{kind} {number}"}}'

    logging.disable(logging.CRITICAL)
    try:
        async with asyncio.TaskGroup() as group:
            for number in range(300):
                group.create_task(call(number))
    finally:
        logging.disable(logging.NOTSET)


async def test_guest_logs_go_to_the_operators_log_bounded(
    shop: Workshop, caplog: pytest.LogCaptureFixture
) -> None:
    """BR-093: log lines are the operator's; a guest can't flood them, and the model never sees them."""
    chatty = Source(
        imports=LOG,
        memory="3",
        declarations="(global $left (mut i32) (i32.const 50))",
        execute="""(memory.fill (i32.const 131072) (i32.const 65) (i32.const 5000))
          (loop $again
            (call $log (i32.const 3) (i32.const 131072) (i32.const 5000))
            (global.set $left (i32.sub (global.get $left) (i32.const 1)))
            (br_if $again (global.get $left)))
          (call $digit (i32.const 1))""",
    )
    tool = await shop.tool(chatty, limits=Limits(log_lines=10))
    with caplog.at_level(logging.DEBUG, logger="wasm_tools"):
        output = await tool.execute({}, context())
    lines = [record for record in caplog.records if "AAAA" in record.getMessage()]
    assert len(lines) == 10
    assert all(record.levelno == logging.WARNING for record in lines)
    assert all(len(record.getMessage()) == len("guest: ") + 4_096 for record in lines)
    assert "40 more log lines were dropped" in caplog.text
    assert output.result == "1"

"""What a sidecar grants reaches the guest, and nothing else does (BR-094, BR-095)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.wasm.guests import HTTP, Source
from tests.support.wasm.site import Page, site
from tests.support.wasm.workshop import Workshop, context, no_thread_is_stuck, workshop
from tool_registry.context import ToolContext
from tool_registry.errors import InvalidParams, ToolFailed, ToolTimeout
from tool_registry.output import ToolOutput
from wasm_tools.granted_host import Outside, look_up
from wasm_tools.limits import Limits

# Each answers what the host gave for its parameters, which are the name, path or URL as they are.
ASK_SECRET = Source(
    imports='(import "portside:tool/host@1.0.0" "secret-exists" (func $secret (param i32 i32) (result i32)))',
    execute="(call $digit (call $secret (i32.add (local.get $params) (i32.const 9)) "
    "(i32.sub (local.get $len) (i32.const 11))))",
)
READ = Source(
    imports='(import "portside:tool/host@1.0.0" "workspace-read" (func $read (param i32 i32 i32)))',
    execute="""(call $read (i32.add (local.get $params) (i32.const 9))
        (i32.sub (local.get $len) (i32.const 11)) (i32.const 256))
      (if (result i32) (i32.load8_u (i32.const 256))
        (then (call $answer (i32.load (i32.const 260)) (i32.load (i32.const 264))))
        (else (call $digit (i32.const 0))))""",
)
INVOKE = Source(
    imports='(import "portside:tool/host@1.0.0" "tool-invoke" (func $invoke (param i32 i32 i32 i32 i32)))',
    declarations='(data (i32.const 512) "other")',
    execute="""(call $invoke (i32.const 512) (i32.const 5) (local.get $params) (local.get $len) (i32.const 256))
      (i32.store8 (i32.const 300) (i32.add (i32.const 48) (i32.load8_u (i32.const 256))))
      (call $answer (i32.load (i32.const 260)) (i32.load (i32.const 264)))""",
)
GET = Source(
    imports=HTTP.imports,
    declarations='(data (i32.const 512) "GET")',
    execute="""(call $http (i32.const 512) (i32.const 3) (i32.add (local.get $params) (i32.const 9))
        (i32.sub (local.get $len) (i32.const 11)) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
        (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 256))
      (if (result i32) (i32.load8_u (i32.const 256))
        (then (call $answer (i32.load (i32.const 260)) (i32.load (i32.const 264))))
        (else (call $answer (i32.load (i32.const 272)) (i32.load (i32.const 276)))))""",
)


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncGenerator[Workshop]:
    async with workshop(tmp_path) as made:
        yield made


async def local(_host: str, _port: int) -> list[str]:
    return ["127.0.0.1"]


async def secret(name: str) -> str | None:
    return {"github": "a-value-of-github", "other": "a-value-of-other"}.get(name)


def web(port: int, **more: Any) -> dict[str, Any]:
    rule = {"host": "a.test", "scheme": "http", "port": port}
    return {"version": 1, "http": {"allow": [rule], "allow_private": True, **more}}


async def test_a_secret_is_known_by_its_granted_name_only(shop: Workshop) -> None:
    grants = {"version": 1, "secrets": {"exists": ["github", "absent"]}}
    tool = await shop.tool(ASK_SECRET, sidecar=grants, outside=Outside(secret=secret))
    answers = {
        name: (await tool.execute({"text": name}, context())).result for name in ("github", "absent", "other")
    }
    assert answers == {"github": "1", "absent": "0", "other": "0"}


async def test_only_granted_paths_of_the_workspace_are_read(shop: Workshop) -> None:
    """BR-094: a path that leads out, or to what is not granted, is as if it were not there."""
    asked: list[tuple[str, str]] = []

    async def file(job_id: str, path: str, limit_bytes: int) -> bytes | None:
        asked.append((job_id, path))
        return {"data/a.txt": b"in", "data.txt": b"beside", "secret.txt": b"out"}.get(path)

    tool = await shop.tool(
        READ, sidecar={"version": 1, "workspace": {"read": ["data"]}}, outside=Outside(file=file)
    )
    paths = (
        "data/a.txt",
        "./data//a.txt",
        "data/../secret.txt",
        "data.txt",
        "secret.txt",
        "/data/a.txt",
        "data/no",
        "",
    )
    answers = [(await tool.execute({"text": path}, context(job_id="j"))).result for path in paths]
    assert answers == ["in", "in", "0", "0", "0", "0", "0", "0"]
    assert asked == [("j", "data/a.txt"), ("j", "data/a.txt"), ("j", "data/no")]


@pytest.mark.parametrize(
    ("data", "said"), [(b"\xff", "not UTF-8 text"), (b"x" * ((1 << 20) + 1), "over 1 MiB")]
)
async def test_a_file_that_is_no_text_ends_the_call_as_refused(
    shop: Workshop, data: bytes, said: str
) -> None:
    async def file(job_id: str, path: str, limit_bytes: int) -> bytes | None:
        return data

    tool = await shop.tool(
        READ, sidecar={"version": 1, "workspace": {"read": ["."]}}, outside=Outside(file=file)
    )
    with pytest.raises(ToolFailed, match=said) as caught:
        await tool.execute({"text": "x"}, context())
    assert caught.value.cause == "host_refused"


async def test_another_tool_is_called_for_the_same_caller(shop: Workshop) -> None:
    seen: list[tuple[str, dict[str, Any], ToolContext]] = []

    async def invoke(name: str, params: dict[str, Any], context: ToolContext) -> ToolOutput:
        seen.append((name, params, context))
        if "no" in params:
            raise InvalidParams("no such argument")
        return ToolOutput({"sum": 3}, is_error="bad" in params)

    grants = {"version": 1, "tools": {"other": "adder"}}
    tool = await shop.tool(INVOKE, sidecar=grants, outside=Outside(invoke=invoke))
    caller = ToolContext("j", "c", agent="a", grants=frozenset({"adder"}))
    assert (await tool.execute({"a": 1}, caller)).result == '{"sum":3}'
    assert (await tool.execute({"bad": 1}, caller)).result == '{"sum":3}'
    assert (await tool.execute({"no": 1}, caller)).result == "invalid_params: no such argument"
    name, params, inner = seen[0]
    assert (name, params) == ("adder", {"a": 1})
    assert (inner.job_id, inner.call_id, inner.agent, inner.grants) == ("j", "c/1", "a", frozenset({"adder"}))
    assert inner.deadline is not None, "it ends with the outer call"


async def test_tools_that_call_one_another_end_in_words(shop: Workshop) -> None:
    tools: dict[str, Any] = {}

    async def invoke(name: str, params: dict[str, Any], context: ToolContext) -> ToolOutput:
        return await asyncio.create_task(tools[name].execute(params, context))

    outside = Outside(invoke=invoke)
    for name, other in (("one", "two"), ("two", "three"), ("three", "one")):
        sidecar = {"version": 1, "tools": {"other": other}}
        tools[name] = await shop.tool(INVOKE, sidecar=sidecar, outside=outside, name=name)
    output = await tools["one"].execute({}, context())
    assert output.result == "one can't be called: one > two > three > one goes round or too deep"


async def test_a_request_leaves_with_the_operators_secret_and_the_guest_never_sees_it(shop: Workshop) -> None:
    credentials = {"m": {"secret": "github", "in": "bearer", "hosts": ["a.test"]}}
    with site({}) as there:
        there.pages["/"] = lambda asked: Page(json.dumps(dict(asked.headers)).encode())
        sidecar = web(there.port, credentials=credentials)
        tool = await shop.tool(GET, sidecar=sidecar, outside=Outside(secret=secret, resolve=local))
        output = await tool.execute({"text": f"http://a.test:{there.port}/"}, context())
        assert there.asked[0].headers["Authorization"] == "Bearer a-value-of-github"
        assert json.loads(output.result)["Authorization"] == "Bearer [redacted:github]"
        refused = await tool.execute({"text": f"http://b.test:{there.port}/"}, context())
        assert refused.result == "not granted: b.test is not among the hosts this tool may reach"


async def test_the_rate_of_requests_is_counted_for_each_job_over_all_its_calls(shop: Workshop) -> None:
    with site({"/": Page(b"ok")}) as there:
        sidecar = web(there.port, rate_limit={"calls": 2, "per_s": 3600})
        tool = await shop.tool(GET, sidecar=sidecar, outside=Outside(resolve=local))
        url = {"text": f"http://a.test:{there.port}/"}
        answers = [(await tool.execute(url, context(job_id=job))).result for job in "aaab"]
        assert answers[0] == answers[1] == answers[3] == "ok"
        assert "over the rate of HTTP requests" in answers[2]


@pytest.mark.parametrize(
    ("limits", "said"),
    [({"http_requests": 0}, "its 0 HTTP requests"), ({"http_bytes": 30}, "its limit of 30 bytes")],
)
async def test_a_request_over_a_limit_ends_the_call_whatever_the_guest_makes_of_it(
    shop: Workshop, limits: dict[str, int], said: str
) -> None:
    """BR-095: the guest would answer what it was told; its caller sees that a limit ended it."""
    with site({"/": Page(b"ok")}) as there:
        sidecar = {**web(there.port), "limits": limits}
        tool = await shop.tool(GET, sidecar=sidecar, outside=Outside(resolve=local))
        with pytest.raises(ToolFailed, match=said) as caught:
            await tool.execute({"text": f"http://a.test:{there.port}/"}, context())
    assert caught.value.cause == "wasm_limit"
    assert "less at once" in str(caught.value.hint)


async def test_a_call_that_is_cancelled_leaves_its_request_at_once(shop: Workshop) -> None:
    """BR-090: the socket is shut, so the thread comes back long before its limit."""
    began, gone = asyncio.Event(), asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        began.set()
        while await reader.read(1_000):
            pass
        writer.close()
        gone.set()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        tool = await shop.tool(GET, sidecar=web(port), outside=Outside(resolve=local))
        calling = asyncio.create_task(tool.execute({"text": f"http://a.test:{port}/"}, context()))
        async with asyncio.timeout(60):
            await began.wait()
            calling.cancel()
            await gone.wait()
        with pytest.raises(asyncio.CancelledError):
            await calling
        await no_thread_is_stuck(shop.runtime)


async def test_names_are_looked_up_on_the_threads_that_were_given_for_it() -> None:
    """BR-090: a resolver that hangs takes none of the threads that everything else waits on."""
    with ThreadPoolExecutor(1) as threads:
        assert "127.0.0.1" in await look_up("127.0.0.1", 80, threads=threads)
    with pytest.raises(RuntimeError, match="after shutdown"):
        await look_up("127.0.0.1", 80, threads=threads)


async def test_a_secret_store_or_resolver_that_hangs_holds_a_call_no_longer_than_its_limit(
    shop: Workshop,
) -> None:
    """BR-090: whatever the host waits for."""

    async def never(_host: str, _port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    tool = await shop.tool(GET, sidecar=web(80), outside=Outside(resolve=never), limits=Limits(timeout_s=0.5))
    with pytest.raises(ToolTimeout):
        await tool.execute({"text": "http://a.test:80/"}, context())
    await no_thread_is_stuck(shop.runtime)

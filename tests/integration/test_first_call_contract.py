"""HW-2, HW-3, HW-4: the first tool-capable model request carries every advertised definition, before anything ran.

Source: hosted-workers-and-remote-tools, "the first tool-capable model request already carries the advertised
WASM schema before any execution attempt", in the hosted and in the in-process path alike.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from orchestrator.ports.models import ModelRequest
from tests.fakes.model import CapturingModel, calls
from tests.fakes.tools import FakeTool
from tests.support.orchestrator import Wired, problem, wired
from tool_registry.catalogue import build_catalogue
from tool_registry.registry import Offer
from tool_registry.tool import ToolSource, ToolTraits
from worker.client import WorkerClient
from worker.clock import SystemClock
from worker.protocol.job import CompletionReport
from worker.session import Session, SessionSettings
from worker.token import Token

ROOT = Path(__file__).resolve().parents[2]
PLACEHOLDERS: list[dict[str, Any]] = [{}, {"type": "object"}, {"type": "object", "properties": {}}]


async def _any(_params: Any, _context: Any) -> str:
    return "ran"


@pytest.fixture
async def orchestrator(home: Path) -> AsyncIterator[Wired]:
    """With a real WASM tool, a real MCP server, and WASM tools without a schema."""
    (home / "tools").mkdir(mode=0o700)
    shutil.copy(ROOT / "wasm_tools/guests/calc/calc.wasm", home / "tools")
    server = {"command": sys.executable, "args": [str(ROOT / "examples/mcp-notes/server.py")]}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {"notes": server}}))
    async with wired(home, model=CapturingModel()) as running:
        async with asyncio.timeout(30.0):
            while not (running.running.registry.get("notes_search")):  # noqa: ASYNC110 - a server's start
                await asyncio.sleep(0.02)
        for number, schema in enumerate(PLACEHOLDERS):
            tool = FakeTool(f"bare_{number}", _any, schema)
            owner = f"wasm:bare_{number}"
            tool.traits = _wasm(owner)
            running.running.registry.replace(owner, [Offer(tool)])
        yield running


def _wasm(owner: str) -> ToolTraits:
    return ToolTraits(ToolSource.WASM, owner)


async def run_hosted(orchestrator: Wired, output_dir: Path) -> str:
    """A job's session as the container runs it, over the job's own socket."""
    worker = await orchestrator.worker(register=False)
    transport = httpx.AsyncHTTPTransport(uds=str(worker.socket))
    async with httpx.AsyncClient(transport=transport, base_url="http://portside") as http:
        client = WorkerClient(http, worker.job_id, Token(worker.token), clock=SystemClock())
        session = Session(
            await client.job(), client, SessionSettings("/workspace", 1, output_dir), clock=SystemClock()
        )
        end = await session.run([])
        await session.events.flush(5.0)
        await worker.upload_changes()
        await client.report(CompletionReport(outcome=end.outcome, iterations=end.iterations))
    return worker.job_id


async def run_in_process(orchestrator: Wired, _output_dir: Path) -> str:
    job_id = await orchestrator.new_job(mode="in-process")
    await orchestrator.ended(job_id, within_s=20.0)
    return job_id


PATHS = pytest.mark.parametrize("run", [run_hosted, run_in_process])


def advertised(orchestrator: Wired) -> dict[str, tuple[str, str]]:
    """The registry's own texts of what a hosted job may see."""
    catalogue = build_catalogue(orchestrator.running.registry)
    return {tool.name: (tool.description, tool.parameters_json) for tool in catalogue.tools}


def shown(request: ModelRequest) -> dict[str, tuple[str, str]]:
    return {tool.name: (tool.description, tool.parameters_json) for tool in request.tools or ()}


@PATHS
async def test_the_first_request_carries_every_definition_byte_for_byte_before_anything_ran(
    orchestrator: Wired, tmp_path: Path, run: Any
) -> None:
    wanted = advertised(orchestrator)
    assert {"calc", "notes_search", "network_claim", "echo"} <= wanted.keys()
    audited: list[int] = []
    complete = orchestrator.model.complete

    async def watched(request: ModelRequest) -> Any:
        audited.append(len(await orchestrator.stores.audit.read()))
        return await complete(request)

    orchestrator.model.complete = watched
    job_id = await run(orchestrator, tmp_path)
    assert (await orchestrator.job(job_id)).state == "completed"
    first = orchestrator.model.requests[0]
    assert first.tools is not None
    carried = shown(first)
    assert {name: carried[name] for name in wanted} == wanted
    assert carried.keys() - wanted.keys() == {"finish"}
    assert audited[0] == 0
    (contract,) = await orchestrator.events(job_id, "contract")
    assert contract["identical"]
    assert contract["tools"] == len(wanted)


@PATHS
async def test_later_requests_carry_the_same_definitions_and_what_came_meanwhile(
    orchestrator: Wired, tmp_path: Path, run: Any
) -> None:
    """The merged view is refreshed in later iterations, not narrowed to the local one."""
    orchestrator.model.then(
        calls(("1", "calc", '{"expression": "6 * 7"}'), ("2", "notes_search", '{"query": "errors"}'))
    )
    complete = orchestrator.model.complete

    async def adds_a_tool(request: ModelRequest) -> Any:
        late = FakeTool("late", _any, {"type": "object", "properties": {"a": {"type": "string"}}})
        late.traits = _wasm("wasm:late")
        orchestrator.running.registry.replace("wasm:late", [Offer(late)])
        return await complete(request)

    before = advertised(orchestrator)
    orchestrator.model.complete = adds_a_tool
    job_id = await run(orchestrator, tmp_path)
    first, second = orchestrator.model.requests[:2]
    assert {name: shown(first)[name] for name in before} == before
    after = advertised(orchestrator)
    assert {name: shown(second)[name] for name in after} == after
    assert "late" in after
    results = [message for message in second.messages if message.role == "tool"]
    assert [result.is_error for result in results] == [False, False], results
    assert "42" in str(results[0].content)
    calls_made = (await orchestrator.operator.get(f"/api/v1/jobs/{job_id}/calls")).json()
    assert [(one["tool_name"], one["verdict"], one["first_call"]) for one in calls_made] == [
        ("calc", "ok", True),
        ("notes_search", "ok", True),
    ]


@PATHS
async def test_a_wasm_tool_without_a_schema_is_never_advertised(
    orchestrator: Wired, tmp_path: Path, run: Any
) -> None:
    """A placeholder is no contract: hidden as needs_schema, in no catalogue, in no request."""
    names = {f"bare_{number}" for number in range(len(PLACEHOLDERS))}
    for name in names:
        entry = orchestrator.running.registry.get(name)
        assert entry is not None
        assert entry.state == "needs_schema"
    listed = {one["name"]: one for one in (await orchestrator.operator.get("/api/v1/tools")).json()}
    assert {listed[name]["hidden_reason"] for name in names} == {"needs_schema"}
    await run(orchestrator, tmp_path)
    for request in orchestrator.model.requests:
        assert not names & shown(request).keys()
    worker = await orchestrator.worker()
    catalogue = (await worker.get("tools/catalog")).json()
    assert not names & {one["name"] for one in catalogue["tools"]}
    for name in names:
        refused = problem(await worker.execute(name))
        assert (refused["code"], refused["reason"]) == ("tool_not_hosted", "needs_schema")


async def test_both_paths_show_one_surface(orchestrator: Wired, tmp_path: Path) -> None:
    await run_hosted(orchestrator, tmp_path)
    await run_in_process(orchestrator, tmp_path)
    hosted, in_process = (request for request in orchestrator.model.requests if request.tools)
    assert shown(hosted) == shown(in_process)


async def test_the_guidance_after_a_failed_call_changes_no_definition(
    orchestrator: Wired, tmp_path: Path
) -> None:
    """Retry guidance is supplemental: the schema stays the contract."""
    orchestrator.model.then(calls(("1", "calc", '{"expression": 5}')))
    await run_hosted(orchestrator, tmp_path)
    first, second = orchestrator.model.requests[:2]
    assert shown(first) == shown(second)
    (result,) = [message for message in second.messages if message.role == "tool"]
    assert result.is_error
    assert "/expression" in str(result.content)

"""HW-4, DC-1, DC-2: the registry follows its files, and a running job sees it at its next step."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from orchestrator.adapters.files.watch import WatchedFolders
from orchestrator.ports.models import ModelAnswer, ModelRequest
from orchestrator.services.live_tools import LiveTools
from tests.fakes import mcp_servers as fakes
from tests.fakes.model import CapturingModel, calls
from tests.support.command_line import ROOT
from tests.support.deadline import eventually, within
from tests.support.mcp import alive
from tests.support.orchestrator import Wired, wired

CALC = ROOT / "wasm_tools" / "guests" / "calc" / "calc.wasm"
COUNT = calls(("1", "count", "{}"))
NO_HINT_S = 600.0


def write_servers(running: Wired, servers: Mapping[str, Any]) -> None:
    """Replace the file of MCP servers as an editor does."""
    draft = running.settings.mcp_file.with_suffix(".edited")
    draft.write_text(json.dumps({"mcpServers": servers}))
    draft.replace(running.settings.mcp_file)


def names(running: Wired) -> list[str]:
    return [entry.name for entry in running.running.registry.entries()]


def shown(request: ModelRequest) -> set[str]:
    return {tool.name for tool in request.tools or ()}


class Stepped(CapturingModel):
    """Holds every request until the test gives its answer."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: asyncio.Queue[ModelAnswer] = asyncio.Queue()

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        self.requests.append(request)
        return await self.answers.get()


@pytest.fixture
async def orchestrator(home: Path) -> AsyncIterator[Wired]:
    """A running orchestrator whose model is the test."""
    async with wired(home, model=Stepped()) as running:
        yield running


async def step(running: Wired, answer: ModelAnswer) -> ModelRequest:
    """Let the model answer, and give the request it is asked next."""
    asked = len(running.model.requests)
    assert isinstance(running.model, Stepped)
    running.model.answers.put_nowait(answer)
    await eventually(lambda: len(running.model.requests) > asked)
    return running.model.requests[-1]


async def at_the_model(running: Wired) -> str:
    """A job that waits for the model's first answer."""
    job_id = await running.new_job(mode="in-process")
    await eventually(lambda: running.model.requests)
    return job_id


async def test_a_component_copied_into_the_folder_is_offered_at_the_next_step(orchestrator: Wired):
    job_id = await at_the_model(orchestrator)
    assert "calc" not in shown(orchestrator.model.requests[0])
    shutil.copy(CALC, orchestrator.settings.tools_dir)
    await eventually(lambda: "calc" in names(orchestrator))
    assert "calc" in shown(await step(orchestrator, COUNT))
    said = "tools changed; added: calc; removed: none"
    async with asyncio.timeout(10):
        while said not in [one["text"] for one in await orchestrator.events(job_id, "log")]:  # noqa: ASYNC110 - batched
            await asyncio.sleep(0.01)


async def test_a_changed_sidecar_changes_the_tool_and_a_removed_file_takes_it_away(orchestrator: Wired):
    shutil.copy(CALC, orchestrator.settings.tools_dir)
    await eventually(lambda: "calc" in names(orchestrator))
    await at_the_model(orchestrator)
    sidecar = orchestrator.settings.tools_dir / "calc.capabilities.json"
    sidecar.write_text(json.dumps({"version": 1, "description": "adds up"}))
    registry = orchestrator.running.registry
    await eventually(lambda: (found := registry.get("calc")) and found.definition.description == "adds up")
    (calc,) = [one for one in (await step(orchestrator, COUNT)).tools or () if one.name == "calc"]
    assert calc.description == "adds up"
    (orchestrator.settings.tools_dir / "calc.wasm").unlink()
    await eventually(lambda: "calc" not in names(orchestrator))
    assert "calc" not in shown(await step(orchestrator, COUNT))


async def test_a_tool_that_is_disabled_is_gone_at_the_next_step_and_back_when_it_is_enabled(
    orchestrator: Wired,
):
    """PD-46."""
    await at_the_model(orchestrator)
    assert "network_inbox" in shown(orchestrator.model.requests[0])
    for action, there in (("disable", False), ("enable", True)):
        answer = await orchestrator.operator.post(f"/api/v1/tools/network_inbox/{action}", json={})
        assert answer.status_code == 200
        assert ("network_inbox" in shown(await step(orchestrator, COUNT))) is there


async def test_a_broken_component_is_named_and_its_neighbours_stay(orchestrator: Wired):
    """BR-096: also when it comes while the service runs."""
    shutil.copy(CALC, orchestrator.settings.tools_dir)
    (orchestrator.settings.tools_dir / "bad.wasm").write_bytes(b"\0asm")
    registry = orchestrator.running.registry
    await eventually(lambda: {"bad", "calc"} <= set(names(orchestrator)))
    bad = registry.get("bad")
    assert bad is not None
    assert bad.state == "failed_to_load"
    shutil.copy(CALC, orchestrator.settings.tools_dir / "bad.wasm")
    await eventually(lambda: (found := registry.get("bad")) and found.state == "active")


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("calc.wasm", b"\0asm", "a WebAssembly header that is cut short"),
        ("calc.capabilities.json", b"{", "calc.capabilities.json: it is not JSON"),
        ("calc.capabilities.json", b'{"version": 1, "schema": {}}', "its schema says nothing"),
    ],
)
async def test_a_change_that_cannot_be_used_leaves_the_tool_as_it_was_and_says_why(
    orchestrator: Wired, file: str, content: bytes, said: str
):
    """BR-096: a job goes on with the old one; the next good file is taken."""
    shutil.copy(CALC, orchestrator.settings.tools_dir)
    await eventually(lambda: "calc" in names(orchestrator))
    (orchestrator.settings.tools_dir / file).write_bytes(content)

    async def told() -> dict[str, Any]:
        return (await orchestrator.operator.get("/api/v1/tools/calc")).json()

    async with asyncio.timeout(20):
        while said not in (await told())["problem"]:  # noqa: ASYNC110 - the file is read by a watcher
            await asyncio.sleep(0.01)
    call = {"params": {"expression": "6*7"}}
    answer = await orchestrator.operator.post("/api/v1/tools/calc/call", json=call)
    assert "42" in answer.json()["output"]["result"]
    assert (await told())["hosted"]
    shutil.copy(CALC, orchestrator.settings.tools_dir)
    (orchestrator.settings.tools_dir / "calc.capabilities.json").unlink(missing_ok=True)
    async with asyncio.timeout(20):
        while (await told())["problem"]:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.01)


async def test_servers_come_change_and_go_with_their_file(orchestrator: Wired):
    await at_the_model(orchestrator)
    write_servers(orchestrator, {"a": fakes.command(fakes.Server), "b": fakes.command(fakes.Slow)})
    await eventually(lambda: {"a_echo", "b_slow"} <= set(names(orchestrator)))
    assert {"a_echo", "b_slow"} <= shown(await step(orchestrator, COUNT))
    write_servers(orchestrator, {"b": {**fakes.command(fakes.Slow), "exclude": ["slow"]}})
    await eventually(lambda: not {"a_echo", "b_slow"} & set(names(orchestrator)))
    later = shown(await step(orchestrator, COUNT))
    assert "b_cancelled" in later
    assert not {"a_echo", "b_slow"} & later


async def test_a_changed_server_that_does_not_start_again_loses_its_tools(orchestrator: Wired):
    write_servers(orchestrator, {"a": fakes.command(fakes.Server)})
    await eventually(lambda: "a_echo" in names(orchestrator))
    write_servers(orchestrator, {"a": {"command": "no-such-program"}})
    await eventually(lambda: "a_echo" not in names(orchestrator))
    (server,) = (await orchestrator.operator.get("/api/v1/mcp")).json()
    assert server["state"] == "failed"


async def test_a_file_that_can_not_be_used_changes_nothing_and_says_why(orchestrator: Wired):
    write_servers(orchestrator, {"a": fakes.command(fakes.Server)})
    await eventually(lambda: "a_echo" in names(orchestrator))
    orchestrator.settings.mcp_file.write_text('{"mcpServers": {"a": {"comand": "x"}}}')

    async def said() -> str:
        return (await orchestrator.operator.get("/api/v1/mcp-file")).json()["problem"]

    async with asyncio.timeout(10):
        while "did you mean 'command'" not in await said():  # noqa: ASYNC110 - the file is read by a watcher
            await asyncio.sleep(0.01)
    assert "a_echo" in names(orchestrator)
    write_servers(orchestrator, {})
    await eventually(lambda: "a_echo" not in names(orchestrator))
    assert await said() == ""


async def test_a_tool_that_vanishes_while_the_model_thinks_fails_clearly_and_is_not_shown_again(
    orchestrator: Wired,
):
    """BR-054, BR-142: the call is refused by name; instructions stay where they were, once."""
    write_servers(orchestrator, {"a": fakes.command(fakes.Instructing)})
    await eventually(lambda: "a_echo" in names(orchestrator))
    await at_the_model(orchestrator)
    write_servers(orchestrator, {})
    await eventually(lambda: "a_echo" not in names(orchestrator))
    following = await step(orchestrator, calls(("1", "a_echo", "{}")))
    result = following.messages[-1]
    assert result.role == "tool"
    assert "a_echo" in str(result.content)
    assert "not" in str(result.content)
    assert "a_echo" not in shown(following)
    write_servers(orchestrator, {"a": fakes.command(fakes.Instructing)})
    await eventually(lambda: "a_echo" in names(orchestrator))
    last = await step(orchestrator, COUNT)
    assert "a_echo" in shown(last)
    assert sum("ask me first" in str(message.content) for message in last.messages) == 1


async def test_a_server_added_by_an_operator_reaches_a_running_job_and_is_not_started_twice(
    orchestrator: Wired, tmp_path: Path
):
    await at_the_model(orchestrator)
    pids = tmp_path / "pids"
    entry = fakes.command(fakes.Dying, str(pids))
    answer = await orchestrator.operator.put("/api/v1/mcp/a", json={"config": entry})
    assert answer.status_code == 201, answer.text
    await eventually(lambda: "a_echo" in names(orchestrator))
    before = orchestrator.running.registry.revision
    assert "a_echo" in shown(await step(orchestrator, COUNT))
    os.utime(orchestrator.settings.mcp_file)  # the watcher looks once more: it is as it was
    shutil.copy(CALC, orchestrator.settings.tools_dir)
    await eventually(lambda: "calc" in names(orchestrator))
    assert orchestrator.running.registry.revision == before + 1


# --- the first catalogue --------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["in-process", "hosted"])
async def test_a_job_is_shown_the_tools_of_a_server_that_was_still_starting(
    orchestrator: Wired, tmp_path: Path, mode: str
):
    """HW-3: its first request has them."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    write_servers(orchestrator, {"late": fakes.command(fakes.Gated, str(gate))})
    await connecting(orchestrator)
    catalogue: asyncio.Task[Any] | None = None
    if mode == "hosted":
        hands = await orchestrator.worker()
        catalogue = asyncio.create_task(hands.get("tools/catalog"))
    else:
        await orchestrator.new_job(mode=mode)
    await asyncio.to_thread(gate.write_text, "go")
    if catalogue is not None:
        tools = (await within(20, catalogue)).json()["tools"]
        assert "late_echo" in {tool["name"] for tool in tools}
    else:
        await eventually(lambda: orchestrator.model.requests)
        assert "late_echo" in shown(orchestrator.model.requests[0])


async def connecting(running: Wired) -> None:
    """Until the one server is being started."""
    async with asyncio.timeout(10):
        while [one["state"] for one in await _servers(running)] != ["connecting"]:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.01)


async def _servers(running: Wired) -> list[dict[str, Any]]:
    return (await running.operator.get("/api/v1/mcp")).json()


async def test_a_job_goes_on_without_a_server_that_takes_too_long_and_says_so(home: Path, tmp_path: Path):
    """BR-052: the bound counts from the server's start, and the timeline names the server."""
    pids = tmp_path / "pids"
    entry = fakes.command(fakes.Silent, str(pids))
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {"mute": entry}}))
    async with wired(home, tools_wait_s=0.3) as running:
        job_id = await running.new_job(mode="in-process")
        assert (await running.ended(job_id)).state == "completed"
        logs = [one["text"] for one in await running.events(job_id, "log")]
        assert any("going on without the MCP servers mute" in text for text in logs)
        assert [one["state"] for one in await _servers(running)] == ["connecting"]
    assert not any(alive(int(pid)) for pid in pids.read_text().split())


async def test_a_grant_that_no_tool_has_is_named_with_the_tool_it_was_meant_for(home: Path):
    """PD-14: a misspelt grant would silently leave its tool out; the timeline says so before the first request."""
    async with wired(home) as running:
        job_id = await running.new_job(mode="in-process", grants=["network_asc", "network_ask", "deploy"])
        assert (await running.ended(job_id)).state == "completed"
        logs = [one["text"] for one in await running.events(job_id, "log")]
    hints = [text.partition(" is called ")[2] for text in logs if "granted" in text]
    assert hints == [
        "'deploy', which this job was granted (see: portside tools list); it may still come",
        "'network_asc', which this job was granted (did you mean 'network_ask'?); it may still come",
    ]


# --- following ------------------------------------------------------------------------------------------


async def hints_of(folders: Sequence[Path], wanted: str, *, look_s: float = NO_HINT_S) -> Any:
    return WatchedFolders(folders, lambda path: path.name == wanted, look_s=look_s).changes()


async def test_a_hint_comes_for_wanted_files_only(tmp_path: Path):
    hints = await hints_of([tmp_path], "wanted")
    await within(5, anext(hints))
    following = asyncio.create_task(anext(hints))
    await _watched(tmp_path, following)
    assert following.done()
    await hints.aclose()


async def _watched(folder: Path, following: asyncio.Task[Any]) -> None:
    """Write until it is heard: a watch begins a moment after it is asked for."""
    async with asyncio.timeout(20):
        while not following.done():
            (folder / "other").write_text("x")
            (folder / "wanted").write_text("x")
            await asyncio.wait([following], timeout=0.3)


async def test_a_folder_made_anew_is_watched_again(tmp_path: Path):
    inner = tmp_path / "tools"
    inner.mkdir()
    hints = await hints_of([tmp_path, inner], "wanted")
    await within(5, anext(hints))
    following = asyncio.create_task(anext(hints))
    await _watched(inner, following)
    shutil.rmtree(inner)
    inner.mkdir()
    for _ in range(3):  # hints about the folder itself
        following = asyncio.create_task(anext(hints))
        await _watched(inner, following)
    await hints.aclose()


async def test_without_news_there_is_a_hint_now_and_then(tmp_path: Path):
    hints = await hints_of([tmp_path / "absent", tmp_path], "wanted", look_s=0.2)
    for _ in range(3):
        await within(5, anext(hints))
    await hints.aclose()


async def test_a_source_that_breaks_does_not_end_the_following_of_the_others(tmp_path: Path):
    looked: list[str] = []

    async def broken() -> None:
        looked.append("broken")
        raise LookupError("broken")

    async def whole() -> None:
        looked.append("whole")

    live = LiveTools(WatchedFolders([tmp_path], lambda _path: True, look_s=0.1), [broken, whole])
    live.start()
    await eventually(lambda: len(looked) >= 4)
    await live.close()
    assert looked[:4] == ["broken", "whole", "broken", "whole"]

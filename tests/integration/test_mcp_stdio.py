"""Servers over stdio that misbehave, and what is left of them."""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import psutil
import pytest

from tests.fakes import mcp_servers as fakes
from tests.support.mcp import CONTEXT, alive, running, until
from tool_registry.errors import Outcome, ToolFailed, ToolNotFound, ToolTimeout, ToolUnavailable
from tool_registry.mcp.config import parse_server
from tool_registry.mcp.log import ServerLog
from tool_registry.mcp.status import ServerState
from tool_registry.mcp.stdio import StdioTransport


async def test_a_server_that_exits_in_a_call_fails_it_at_once_with_code_and_stderr():
    """BR-050: the call ends with the exit code and the last stderr lines, secrets masked; not repeated."""
    entry = {**fakes.command(fakes.Dying), "env": {"SVC_KEY": "s-3cret"}}
    async with running({"s": entry, "other": fakes.command(fakes.Server)}) as found:
        with anyio.fail_after(5), pytest.raises(ToolFailed) as failed:
            await found.call("die")
        assert "exited with code 3" in failed.value.message
        assert "about to die with ***" in failed.value.message
        assert failed.value.outcome is Outcome.UNKNOWN
        assert (await found.call("echo", {"text": "there"}, "other")).result == "there"


async def test_a_server_that_died_is_started_again_for_the_next_call():
    """BR-050: restarted with back-off; its tools stay offered meanwhile."""
    async with running({"s": fakes.command(fakes.Dying)}) as found:
        with pytest.raises(ToolFailed):
            await found.call("die")
        assert found.names() == ["echo", "die", "hang", "child"]
        assert (await found.call("echo", {"text": "again"})).result == "again"
        assert found.status().state is ServerState.READY
        assert "exited with code 3" in found.status().last_error


async def test_a_server_killed_from_outside_fails_the_running_call(tmp_path: Path):
    """BR-050: SIGKILL while a call runs is named, and the process is reaped."""
    pid_file = tmp_path / "pid"
    async with running({"s": fakes.command(fakes.Dying, str(pid_file))}) as found:
        failures: list[ToolFailed] = []

        async def hang() -> None:
            try:
                await found.call("hang")
            except ToolFailed as error:
                failures.append(error)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(hang)
            await until(lambda: pid_file.exists() and pid_file.read_text())
            pid = int(pid_file.read_text())
            os.kill(pid, signal.SIGKILL)
            await until(lambda: failures, within_s=3)
            await until(lambda: not alive(pid))
        assert "SIGKILL" in failures[0].message


async def test_what_a_server_started_ends_with_it():
    """BR-050: a child in a session of its own does not outlive the server that crashed, nor the close."""
    async with running({"s": fakes.command(fakes.Dying)}) as found:
        crashed = int((await found.call("child")).result)
        with pytest.raises(ToolFailed):
            await found.call("die")
        await until(lambda: not alive(crashed))
        closed = int((await found.call("child")).result)
        assert alive(closed)
    assert not alive(closed)


def test_a_start_that_is_called_off_at_any_moment_leaves_no_process():
    """BR-050: also in the milliseconds in which the process is made; each in an event loop that then ends."""
    before = set(psutil.Process().children())
    for turns in range(10):
        anyio.run(_open_and_call_off, turns)
        assert set(psutil.Process().children()) <= before
    gc.collect()  # a process that nobody waited for complains now


async def _open_and_call_off(turns: int) -> None:
    transport = StdioTransport(
        sys.executable, ("-c", "input()"), env={}, cwd=None, log=ServerLog("s"), inherited=os.environ
    )

    async def stay_open() -> None:
        async with transport.open():
            await anyio.sleep_forever()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stay_open)
        for _ in range(turns):
            await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()


async def test_one_slow_one_broken_and_one_silent_server_do_not_delay_the_others(tmp_path: Path):
    """BR-052: each server has its own deadline, and each is in the status with its reason."""
    gate, pids = tmp_path / "gate", tmp_path / "pids"
    os.mkfifo(gate)
    servers: dict[str, Any] = {
        "a": fakes.command(fakes.Server),
        "b": fakes.command(fakes.Gated, str(gate)),
        "c": {"command": "no-such-program"},
        "d": {**fakes.command(fakes.Silent, str(pids)), "start_timeout_s": 1},
    }
    async with running(servers, wait=False) as found:
        await found.settled("a")
        assert found.status("b").state is ServerState.CONNECTING
        await found.settled("c", ServerState.FAILED)
        assert "'no-such-program' was not found" in found.status("c").reason
        await found.settled("d", ServerState.FAILED)
        assert "did not answer `initialize` within 1 s" in found.status("d").reason
        assert "start_timeout_s" in found.status("d").reason
        assert found.names("b") == []
        async with await anyio.open_file(gate, "w"):
            pass
        await found.settled("b")
        assert found.names("b") == ["echo"]
    assert [status.state for status in found.servers.status()] == [ServerState.CLOSED] * 4
    assert not any(alive(int(pid)) for pid in pids.read_text().split())


async def test_a_silent_server_is_tested_with_one_clear_error_and_leaves_nothing(tmp_path: Path):
    """The error of a server that never answers names the fix; its process is gone when it is told."""
    pids = tmp_path / "pids"
    async with running({}) as found:
        entry = {**fakes.command(fakes.Silent, str(pids)), "start_timeout_s": 0.7}
        status = (await found.servers.test("s", parse_server(entry, name="s"))).status
    assert status.state is ServerState.FAILED
    assert status.reason.startswith(
        "it did not answer `initialize` within 0.7 s: check that it is an MCP server"
    )
    assert not any(alive(int(pid)) for pid in pids.read_text().split())


async def test_no_cancellation_is_sent_for_an_initialize_that_timed_out(tmp_path: Path):
    """BR-068: `initialize` must not be cancelled."""
    pids = tmp_path / "pids"
    entry = {**fakes.command(fakes.Silent, str(pids)), "start_timeout_s": 0.7}
    async with running({"s": entry}, wait=False) as found:
        await found.settled(state=ServerState.FAILED)
    seen = [json.loads(line)["method"] for line in (tmp_path / "pids.seen").read_text().splitlines()]
    assert set(seen) == {"initialize"}


@pytest.mark.parametrize("last", ["absent", '""', "null"])
async def test_all_pages_are_read_and_every_tool_can_be_called(last: str):
    """BR-053: three pages of fifty, whatever the last cursor is."""
    async with running({"s": fakes.command(fakes.Paged, last)}) as found:
        assert len(found.names()) == 150
        assert (await found.call("t2_49")).result == "t2_49"
        assert found.status().problems == ()


async def test_a_cursor_that_repeats_ends_the_walk():
    """BR-053: eight tools, once each, and a note."""
    async with running({"s": fakes.command(fakes.Circling)}) as found:
        assert found.names() == [f"t{index}" for index in range(8)]
        assert "repeats a page cursor" in found.status().problems[0]


async def test_a_list_without_end_is_read_for_fifty_pages():
    """BR-053: the walk is bounded, and what was read is used."""
    async with running({"s": fakes.command(fakes.Endless)}) as found:
        assert len(found.names()) == 50
        assert "50 pages" in found.status().problems[0]


async def test_of_a_crowd_of_tools_the_first_thousand_are_taken():
    """BR-053: 1,024 tools of one server at most, and a note about the rest."""
    async with running({"s": fakes.command(fakes.Crowded)}) as found:
        assert len(found.names()) == 1_024
        assert "more than 1,024 tools" in found.status().problems[0]


async def test_an_entry_that_can_not_be_used_costs_only_itself():
    """BR-055, BR-059: a name listed twice keeps its first definition; the rest says why it is missing."""
    async with running({"s": fakes.command(fakes.Mixed)}) as found:
        assert found.names() == ["send", "good"]
        assert found.tool("send").definition.description == "the first"
        problems = found.status().problems
        assert any("'send' is listed twice" in problem for problem in problems)
        assert any("'bare' has no inputSchema" in problem for problem in problems)
        assert any("without a name" in problem for problem in problems)


async def test_changed_tools_are_offered_when_the_call_that_changed_them_returns():
    """BR-054: five notices lead to few lists; the old tool is gone, and says so."""
    async with running({"s": fakes.command(fakes.Changing)}) as found:
        login = found.tool("login")
        assert (await found.call("login")).result == "welcome"
        assert found.names() == ["search"]
        with pytest.raises(ToolNotFound, match="no longer offers 'login'"):
            await login.execute({}, CONTEXT)
        lists, notices = 0, 0
        while notices < 5:
            lists, notices = json.loads((await found.call("search")).result)
        lists, _ = json.loads((await found.call("search")).result)
        assert 2 <= lists <= 4


async def test_noise_on_stdout_is_skipped():
    """BR-066: banners, bytes that are not UTF-8 and a line of 5 MB do not disturb the start or a call."""
    async with running({"s": fakes.command(fakes.Noisy)}) as found:
        assert (await found.call("echo", {"text": "clear"})).result == "clear"


async def test_a_frame_glued_to_a_log_line_times_out_with_a_hint():
    """BR-066: the answer is lost, and the error says why that may be."""
    entry = {**fakes.command(fakes.Noisy), "timeout_s": 0.5}
    async with running({"s": entry}) as found:
        with pytest.raises(ToolTimeout, match="stdout that are no JSON-RPC messages"):
            await found.call("glued")
        assert (await found.call("echo", {"text": "clear"})).result == "clear"


async def test_a_server_that_writes_only_noise_fails_with_its_first_lines(tmp_path: Path):
    """BR-066: at its start timeout."""
    entry = {**fakes.command(fakes.OnlyNoise, str(tmp_path / "pids")), "start_timeout_s": 4.0}
    async with running({"s": entry}, wait=False) as found:
        await found.settled(state=ServerState.FAILED)
        assert "Hello, I am a web server" in found.status().reason
        assert "Listening on port 80" in found.status().reason


async def test_a_call_that_times_out_is_cancelled_and_its_late_answer_ignored():
    """BR-068: the server is told with the request's id; progress does not extend the time."""
    async with running({"s": {**fakes.command(fakes.Slow), "timeout_s": 0.5}}) as found:
        with anyio.fail_after(3), pytest.raises(ToolTimeout, match=r"within 0\.5 s"):
            await found.call("slow")
        assert (await found.call("echo", {"text": "ok"})).result == "ok"
        cancelled, running_ids = json.loads((await found.call("cancelled")).result)
        assert cancelled == running_ids
        assert len(cancelled) == 1


async def test_a_cancelled_call_is_cancelled_at_the_server():
    """BR-068: ending the job ends the work."""
    async with running({"s": fakes.command(fakes.Slow)}) as found:
        seen = anyio.Event()

        def started(_done: float, _total: float | None, _message: str | None) -> None:
            seen.set()

        async def slow() -> None:
            await found.tool("slow").execute({}, replace(CONTEXT, progress=started))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(slow)
            await seen.wait()
            tasks.cancel_scope.cancel()
        cancelled, running_ids = json.loads((await found.call("cancelled")).result)
        assert cancelled == running_ids
        assert len(cancelled) == 1


async def test_a_server_sees_its_own_environment_and_no_secret_of_the_orchestrator(
    monkeypatch: pytest.MonkeyPatch,
):
    """BR-071: PATH, HOME, LANG, TMPDIR and what the configuration names."""
    monkeypatch.setenv("WORKER_JWT", "tok-1")
    monkeypatch.setenv("PROVIDER_KEY", "k-2")
    monkeypatch.setenv("LANG", "C.UTF-8")
    program = Path(sys.executable)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    entry = {**fakes.command(fakes.Environment), "command": program.name, "env": {"SVC_KEY": "s-3", "N": "1"}}
    async with running({"s": entry}) as found:
        seen = json.loads((await found.call("env")).result)
    assert seen["SVC_KEY"] == "s-3"
    assert seen["N"] == "1"
    assert seen["LANG"] == "C.UTF-8"
    assert set(seen) - {"LC_CTYPE"} <= {"PATH", "HOME", "LANG", "TMPDIR", "SVC_KEY", "N"}


async def test_a_secret_reaches_the_environment_and_not_the_process_list():
    """BR-071: `${secret:NAME}` is resolved for the child alone."""

    async def resolve(name: str) -> str | None:
        return {"SVC": "s-3-secret"}.get(name)

    entry = {**fakes.command(fakes.Environment), "env": {"TOKEN": "Bearer ${secret:SVC}"}}
    async with running({"s": entry}, resolve_secret=resolve) as found:
        assert json.loads((await found.call("env")).result)["TOKEN"] == "Bearer s-3-secret"
        family = psutil.Process().children(recursive=True)
        assert len(family) >= 2  # the guard and the server; other fixtures may have children too
        assert not any("s-3-secret" in part for process in family for part in process.cmdline())


async def test_a_secret_that_is_not_set_names_the_command_that_sets_it():
    entry = {**fakes.command(fakes.Server), "env": {"TOKEN": "${secret:SVC}"}}
    async with running({"s": entry}, wait=False) as found:
        await found.settled(state=ServerState.FAILED)
        assert "the secret 'SVC" in found.status().reason


async def test_a_flood_of_notices_and_questions_does_not_disturb_a_call():
    """BR-073: ping is answered, what is not supported gets -32601, the rest is ignored."""
    async with running({"s": {**fakes.command(fakes.Chatty), "timeout_s": 10}}) as found:
        answers = json.loads((await found.call("echo")).result)
    assert answers == {
        "ping": {},
        "roots/list": -32601,
        "sampling/createMessage": -32601,
        "x/unknown": -32601,
    }


async def test_very_large_answers_arrive_whole():
    """BR-065: the adapter loses nothing; bounding what the model sees is the executor's work."""
    async with running({"s": fakes.command(fakes.Large)}) as found:
        dump = await found.call("dump")
        assert dump.result.startswith("HEAD\n")
        assert dump.result.endswith("TAIL")
        assert len(dump.result) > 20_000_000
        assert (await found.call("many")).result.count("y" * 100) == 50_000
        image = await found.call("img")
        assert image.result == "[image: image/png, 22,500,000 bytes]"
        assert len(image.content) == 1


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("code", -32602, "unknown argument"),
        ("no_message", -32000, "the server gave no message"),
        ("no_code", -32603, "only words"),
    ],
)
async def test_an_error_of_the_protocol_is_a_failed_result(name: str, code: int, message: str):
    """BR-062: with code and message, or a generic one; the connection goes on."""
    async with running({"s": fakes.command(fakes.Refusing)}) as found:
        output = await found.call(name)
        assert output.is_error
        assert output.result == {"code": "mcp_error", "message": message, "mcp_code": code, "tool": name}
        assert found.status().state is ServerState.READY


async def test_a_server_of_the_newest_protocol_without_initialize_is_spoken_to():
    async with running({"s": fakes.command(fakes.Modern)}) as found:
        assert found.status().protocol_version == "2026-07-28"
        assert (await found.call("echo", {"text": "new"})).result == "new"


async def test_a_server_that_does_not_come_back_withdraws_its_tools(tmp_path: Path):
    """Its tools are absent with a reason, and a call that still comes is told to retry."""
    script = shutil.copy(fakes.PROGRAM, tmp_path)
    entry = {"command": sys.executable, "args": ["-I", "-S", script, "Dying"]}
    async with running({"s": entry}) as found:
        echo = found.tool("echo")
        os.unlink(script)  # noqa: PTH108 - the path is text
        with pytest.raises(ToolFailed):
            await found.call("die")
        await found.settled(state=ServerState.FAILED)
        assert found.names() == []
        assert "No such file" in found.status().reason
        with pytest.raises(ToolUnavailable) as refused:
            await echo.execute({}, CONTEXT)
        assert refused.value.retry_after_s is not None

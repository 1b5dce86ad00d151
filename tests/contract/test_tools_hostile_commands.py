"""Commands that try to stay, to hide or to drown the worker (PD-9): each is bounded and leaves it able to answer."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from tests.support.deadline import eventually
from tests.support.tool_workspace import ToolWorkspace

# Far more than it takes on an idle machine, and less than a worker needs that drowns.
ANSWERS_WITHIN_S = 10.0
TIMEOUT_S = 1.5
# SIGTERM, 2 s to SIGKILL, 2 s for a supervisor that does not answer, and a slow machine.
BOUND_S = 30.0

STAYING = {
    "ignores SIGTERM in a session of its own": "setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 711.25; done' &",
    "double fork": "(setsid sh -c '(setsid sleep 712.25 &) &' &); sleep 0.2",
    "holds both pipes": "(trap '' PIPE; while :; do echo tick; sleep 0.713; done) & disown",
    "nohup with files": "nohup setsid sleep 714.25 >/dev/null 2>&1 </dev/null & echo on",
}
HANGING = {
    "stops itself": "kill -STOP $$; sleep 721.25",
    "stops its supervisor": "kill -STOP $PPID; sleep 722.25",
    "stops its supervisor, again and again": "while kill -STOP $PPID; do :; done & sleep 723.25",
    "endless loop of children": "while :; do sleep 724.25 & wait -n; done",
    "ignores everything": "trap '' TERM INT HUP QUIT PIPE; while :; do sleep 0.725; done",
}
FLOODING = {
    "lines": "yes 'a line of text that goes on for a while'",
    "noise": "cat /dev/urandom",
    "zeros": "cat /dev/zero",
    "noise on both": "cat /dev/urandom & cat /dev/urandom >&2",
    "carriage returns": "tr '\\0' '\\r' </dev/zero",
    "one endless line": "tr '\\0' 'x' </dev/zero",
    "cursor to the right": "yes \"$(printf '\\033[65535C')\" | tr -d '\\n'",
    "blanks between": "yes \"$(printf 'x\\033[60000G\\r')\" | tr -d '\\n'",
    "escapes": "yes \"$(printf '\\033]')\" | tr -d '\\n'",
}


async def slowest_answer_s(tool_workspace: ToolWorkspace, call: asyncio.Task[Any]) -> float:
    """How long the tools' process took to answer, at worst, while the call ran."""
    slowest = 0.0
    while not call.done():
        began = time.monotonic()
        await tool_workspace.ping()
        slowest = max(slowest, time.monotonic() - began)
        await asyncio.wait({call}, timeout=0.02)
    return slowest


async def held(tool_workspace: ToolWorkspace, command: str, timeout_s: float = TIMEOUT_S) -> dict[str, Any]:
    """The result of a command, in time, with the worker able to answer all along."""
    began = time.monotonic()
    call = asyncio.create_task(tool_workspace.call("shell", command=command, timeout_s=timeout_s))
    slowest = await slowest_answer_s(tool_workspace, call)
    assert time.monotonic() - began < timeout_s + BOUND_S
    assert slowest < ANSWERS_WITHIN_S
    output = await call
    assert len(output.text()) < 600_000  # both streams bounded, escaped bytes included
    alive = await tool_workspace.result("shell", command="echo alive")
    assert alive["stdout"] == "alive\n"
    return output.result


@pytest.mark.parametrize("command", STAYING.values(), ids=STAYING)
async def test_nothing_survives_its_call(tool_workspace: ToolWorkspace, command: str):
    """BR-025, BR-027: whatever it does to get out of sight."""
    result = await held(tool_workspace, command, timeout_s=20)
    assert result["exit_code"] == 0
    for mark in ("711.25", "712.25", "0.713", "714.25"):
        assert tool_workspace.processes_with(mark) == []
    await eventually(lambda: tool_workspace.zombies() == [])


@pytest.mark.parametrize("command", HANGING.values(), ids=HANGING)
async def test_what_hangs_is_ended_with_all_below_it(tool_workspace: ToolWorkspace, command: str):
    """BR-027: stopped processes and stopped supervisors too."""
    result = await held(tool_workspace, command)
    assert result["timed_out"] is True
    for mark in ("721.25", "722.25", "723.25", "724.25", "0.725"):
        await eventually(lambda mark=mark: tool_workspace.processes_with(mark) == [])
    await eventually(lambda: tool_workspace.zombies() == [])


@pytest.mark.parametrize("command", FLOODING.values(), ids=FLOODING)
async def test_a_flood_of_output_leaves_the_worker_answering(tool_workspace: ToolWorkspace, command: str):
    """BR-029, BR-031, BR-036: bounded in memory and in what is shown, whatever the bytes are."""
    before = tool_workspace.memory_bytes()
    result = await held(tool_workspace, command)
    assert result["timed_out"] is True
    for stream in ("stdout", "stderr"):
        assert len(result[stream].encode()) <= 2 * 32 * 1024 + 500
    assert tool_workspace.memory_bytes() - before < 256 * 2**20


@pytest.mark.docker
@pytest.mark.parametrize("tool_place", ["container"], indirect=True)
async def test_a_fork_bomb_ends_with_its_call(tool_workspace: ToolWorkspace):
    """BR-106: all is stopped before it is killed, so it can't outrun the killing."""
    result = await held(tool_workspace, "bomb() { bomb | bomb & }; bomb; sleep 731.25")
    assert result["timed_out"] is True or result["exit_code"] != 0 or result["ended"]
    assert tool_workspace.processes_with("bomb") == []
    await eventually(lambda: tool_workspace.zombies() == [])


@pytest.mark.docker
@pytest.mark.parametrize("tool_place", ["container"], indirect=True)
async def test_what_loses_its_supervisor_falls_to_the_worker_and_ends(tool_workspace: ToolWorkspace):
    """BR-027, BR-039: the worker is the reaper of all below it."""
    command = (
        "setsid sleep 732.25 & (setsid sh -c 'trap \"\" TERM; while :; do sleep 733.25; done' &); "
        "sleep 0.2; kill -9 $PPID; sleep 734.25"
    )
    result = await held(tool_workspace, command, timeout_s=20)
    assert result["signal"] == "SIGKILL"
    for mark in ("732.25", "733.25", "734.25"):
        await eventually(lambda mark=mark: tool_workspace.processes_with(mark) == [])
    await eventually(lambda: tool_workspace.zombies() == [])

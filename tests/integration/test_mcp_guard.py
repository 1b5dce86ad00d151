"""What the guard of a stdio server leaves behind: nothing (DC-1)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.support.mcp import alive, until
from tool_registry.mcp.stdio import GUARD

ORCHESTRATOR = """
import os, subprocess, sys
reader, writer = os.pipe()
command = [sys.executable, "-I", "-S", {guard!r}, str(reader), *{command!r}]
process = subprocess.Popen(command, pass_fds=[reader], start_new_session=True)
print(process.pid, flush=True)
process.wait()
"""


@contextmanager
def _guarded(*command: str) -> Generator[tuple[subprocess.Popen[str], int]]:
    """A process that stands for the orchestrator, and its guard's pid."""
    program = ORCHESTRATOR.format(guard=str(GUARD), command=command)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, int(process.stdout.readline())
        process.kill()


async def test_everything_ends_when_the_orchestrator_is_killed(tmp_path: Path):
    """A child that left the process group and ignores SIGTERM is found all the same."""
    script = f"trap '' TERM; setsid sh -c 'echo $$ > {tmp_path}/deep; exec sleep 600' & wait; sleep 600"
    with _guarded("/bin/sh", "-c", script) as (orchestrator, guard):
        await until(lambda: (tmp_path / "deep").exists() and (tmp_path / "deep").read_text().strip())
        family = [guard, *(child.pid for child in psutil.Process(guard).children(recursive=True))]
        assert int((tmp_path / "deep").read_text()) in family
        orchestrator.kill()
        orchestrator.wait()
        await until(lambda: not any(alive(pid) for pid in family))


async def test_the_command_ends_when_its_guard_is_killed():
    with _guarded("/bin/sleep", "600") as (orchestrator, guard):
        await until(lambda: psutil.Process(guard).children())
        child = psutil.Process(guard).children()[0].pid
        os.kill(guard, signal.SIGKILL)
        await until(lambda: not alive(child))
        orchestrator.wait(10)


@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -9 $$", -9), ("kill -15 $$", -15)])
def test_the_guard_ends_the_way_its_command_did(script: str, code: int):
    reader, writer = os.pipe()
    command = [sys.executable, "-I", "-S", str(GUARD), str(reader), "/bin/sh", "-c", script]
    ended = subprocess.run(command, pass_fds=[reader], start_new_session=True, timeout=20, check=False)
    os.close(reader)
    os.close(writer)
    assert ended.returncode == code

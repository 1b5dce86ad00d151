"""`python -m worker` as it runs in a container: its own process, the real tools, the real signals (HW-1)."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.worker_orchestrator import WorkerOrchestrator, call, finish, in_turn, tar_of
from tests.support.deadline import eventually, within


@pytest.fixture
def orchestrator(tmp_path: Path) -> Iterator[WorkerOrchestrator]:
    directory = tmp_path / "job"
    directory.mkdir()
    fake = WorkerOrchestrator(directory)
    fake.start()
    yield fake
    fake.stop()


async def start(orchestrator: WorkerOrchestrator, tmp_path: Path) -> asyncio.subprocess.Process:
    settings = {
        "PORTSIDE_JOB_ID": orchestrator.job_id,
        "PORTSIDE_ATTEMPT": "3",
        "PORTSIDE_SOCKET": str(orchestrator.socket),
        "PORTSIDE_TOKEN_FILE": str(orchestrator.token_file),
        "PORTSIDE_STATE_DIR": str(tmp_path / "state"),
        "PORTSIDE_OUTPUT_DIR": str(tmp_path / "out"),
        "PORTSIDE_WORKSPACE": str(tmp_path / "workspace"),
        "PORTSIDE_GRACE_S": "15",
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path / "state" / "home"),
    }
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "worker", env=settings, cwd="/", stderr=asyncio.subprocess.PIPE
    )


async def test_a_job_uses_the_five_tools_and_a_remote_one(
    orchestrator: WorkerOrchestrator, tmp_path: Path
) -> None:
    orchestrator.workspace = tar_of({"a.txt": b"one\n", "sub/b.txt": b"b\n"})
    orchestrator.credentials = [{"env_var": "GH_TOKEN", "value": "s3cr3t-value"}]
    orchestrator.advertise("github_search", lambda params: params["query"], read_only=True)
    patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** End Patch"
    orchestrator.model = in_turn(
        call(
            ("1", "list_dir", {}),
            ("2", "read_file", {"path": "a.txt"}),
            ("3", "github_search", {"query": "q"}),
        ),
        call(
            ("4", "apply_patch", {"patch": patch}), ("5", "write_file", {"path": "c.txt", "content": "c\n"})
        ),
        call(("6", "shell", {"command": "cat a.txt c.txt; echo $GH_TOKEN; env | grep -c PORTSIDE; true"})),
        finish("did it"),
    )
    process = await start(orchestrator, tmp_path)
    _, errors = await within(60.0, process.communicate())
    assert (process.returncode, errors) == (0, b"")
    assert orchestrator.report is not None
    assert orchestrator.report["outcome"] == "completed"
    assert orchestrator.changes is not None
    assert b"-one\n+two\n" in orchestrator.changes
    assert b"c.txt" in orchestrator.changes
    assert orchestrator.executed == [("3:3", "github_search", {"query": "q"})]
    results = [one for one in orchestrator.of_type("tool_result") if one["tool_name"] != "finish"]
    assert [one["verdict"] for one in results] == ["ok"] * 6
    shell = results[-1]["preview"]
    assert "two\\nc\\n[redacted:GH_TOKEN]\\n0\\n" in shell


async def test_sigterm_ends_the_command_and_hands_over_what_it_did(
    orchestrator: WorkerOrchestrator, tmp_path: Path
) -> None:
    orchestrator.model = in_turn(call(("1", "shell", {"command": "echo half > half.txt; sleep 300"})))
    process = await start(orchestrator, tmp_path)
    await eventually((tmp_path / "workspace" / "half.txt").exists, 30.0)
    process.send_signal(signal.SIGTERM)
    _, errors = await within(15.0, process.communicate())
    assert (process.returncode, errors) == (0, b"")
    assert orchestrator.report is not None
    assert orchestrator.report["outcome"] == "cancelled"
    assert orchestrator.changes is not None
    assert b"+half" in orchestrator.changes


async def test_a_worker_without_its_token_says_so_in_one_line(
    orchestrator: WorkerOrchestrator, tmp_path: Path
) -> None:
    orchestrator.token_file.unlink()
    process = await start(orchestrator, tmp_path)
    _, errors = await within(30.0, process.communicate())
    assert process.returncode == 1
    assert errors.decode().count("\n") == 1
    assert "token" in errors.decode()

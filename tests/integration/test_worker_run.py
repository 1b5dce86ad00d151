"""A whole hosted job against a fake orchestrator on a unix socket."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.local_tools import LocalTool, LocalToolSet
from tests.fakes.worker_orchestrator import (
    WorkerOrchestrator,
    call,
    finish,
    in_turn,
    tar_of,
)
from worker.clock import SystemClock
from worker.run import HostedWorker
from worker.settings import Settings


@pytest.fixture
def orchestrator(tmp_path: Path) -> Iterator[WorkerOrchestrator]:
    directory = tmp_path / "job"
    directory.mkdir()
    fake = WorkerOrchestrator(directory)
    fake.start()
    yield fake
    fake.stop()


def worker_of(
    orchestrator: WorkerOrchestrator,
    tmp_path: Path,
    make: Callable[[Path], LocalToolSet] = lambda _workspace: LocalToolSet(),
    **settings: Any,
) -> HostedWorker:
    values = Settings(
        orchestrator.job_id,
        socket=orchestrator.socket,
        token_file=orchestrator.token_file,
        state_dir=tmp_path / "state",
        output_dir=tmp_path / "out",
        workspace=tmp_path / "workspace",
        **settings,
    )
    return HostedWorker(values, lambda workspace, _credentials, _output: make(workspace), SystemClock())


def writer(workspace: Path) -> LocalToolSet:
    async def write(params: dict[str, Any]) -> str:
        (workspace / params["path"]).write_text(params["content"])
        return "written"

    return LocalToolSet(LocalTool("write_file", write))


async def test_a_job_runs_from_its_workspace_to_its_diff(
    orchestrator: WorkerOrchestrator, tmp_path: Path
) -> None:
    orchestrator.workspace = tar_of({"a.txt": b"one\n"})
    orchestrator.advertise("github_search", lambda params: f"found {params['query']}")
    orchestrator.model = in_turn(
        call(("c1", "github_search", {"query": "x"})),
        call(("c2", "write_file", {"path": "a.txt", "content": "two\n"})),
        finish("changed a.txt"),
    )
    assert await worker_of(orchestrator, tmp_path, writer).run() == 0
    assert orchestrator.report == {
        "outcome": "completed",
        "reason": None,
        "message": "changed a.txt",
        "iterations": 3,
        "result": None,
    }
    assert orchestrator.changes is not None
    assert b"-one\n+two\n" in orchestrator.changes
    assert orchestrator.executed == [("1:c1", "github_search", {"query": "x"})]

"""A whole hosted job against a fake orchestrator on a unix socket."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.local_tools import LocalTool, LocalToolSet
from tests.fakes.worker_orchestrator import (
    Drop,
    Hang,
    Page,
    Refuse,
    WorkerOrchestrator,
    call,
    finish,
    in_turn,
    say,
    tar_of,
)
from tests.support.deadline import eventually, within
from worker.clock import SystemClock
from worker.run import Granted, HostedWorker, run_until_done
from worker.settings import Settings


@pytest.fixture
def orchestrator(tmp_path: Path) -> Iterator[WorkerOrchestrator]:
    directory = tmp_path / "job"
    directory.mkdir()
    fake = WorkerOrchestrator(directory)
    fake.start()
    yield fake
    fake.stop()


def settings_of(orchestrator: WorkerOrchestrator, tmp_path: Path, **settings: Any) -> Settings:
    return Settings(
        orchestrator.job_id,
        socket=orchestrator.socket,
        token_file=orchestrator.token_file,
        state_dir=tmp_path / "state",
        output_dir=tmp_path / "out",
        workspace=tmp_path / "workspace",
        **settings,
    )


def worker_of(
    orchestrator: WorkerOrchestrator,
    tmp_path: Path,
    make: Callable[[Path], LocalToolSet] = lambda _workspace: LocalToolSet(),
    **settings: Any,
) -> HostedWorker:
    values = settings_of(orchestrator, tmp_path, **settings)
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


def shell(started: asyncio.Event, release: asyncio.Event) -> Callable[[Path], LocalToolSet]:
    """A tool that writes a file, then waits."""

    def make(workspace: Path) -> LocalToolSet:
        async def act(_params: dict[str, Any]) -> str:
            (workspace / "half.txt").write_text("half\n")
            started.set()
            await release.wait()
            return "done"

        return LocalToolSet(LocalTool("shell", act))

    return make


async def test_a_long_call_outlives_an_outage_and_the_token(
    orchestrator: WorkerOrchestrator, tmp_path: Path
) -> None:
    """BR-119: the orchestrator goes away during a tool call, the token expires, the result arrives."""
    started, release = asyncio.Event(), asyncio.Event()
    orchestrator.model = in_turn(call(("c1", "shell", {})), finish("worked"))
    running = asyncio.create_task(worker_of(orchestrator, tmp_path, shell(started, release)).run())
    await within(20.0, started.wait())
    await asyncio.to_thread(orchestrator.stop)
    orchestrator.expire_tokens()
    release.set()
    await asyncio.to_thread(orchestrator.start)
    assert await within(30.0, running) == 0
    assert orchestrator.report is not None
    assert (orchestrator.report["outcome"], orchestrator.report["message"]) == ("completed", "worked")
    assert orchestrator.changes is not None
    assert b"+half" in orchestrator.changes


async def test_sigterm_stops_the_tool_uploads_what_changed_and_reports_cancelled(
    orchestrator: WorkerOrchestrator, tmp_path: Path
) -> None:
    started = asyncio.Event()
    orchestrator.model = in_turn(call(("c1", "shell", {})))
    worker = worker_of(orchestrator, tmp_path, shell(started, asyncio.Event()), grace_s=10.0)
    running = asyncio.create_task(run_until_done(worker))
    await within(20.0, started.wait())
    os.kill(os.getpid(), signal.SIGTERM)
    assert await within(10.0, running) == 0
    assert orchestrator.report is not None
    assert orchestrator.report["outcome"] == "cancelled"
    assert "asked to stop" in orchestrator.report["reason"]
    assert orchestrator.changes is not None
    assert b"+half" in orchestrator.changes
    assert orchestrator.of_type("result")[-1]["outcome"] == "cancelled"


async def test_sigterm_while_the_orchestrator_is_away_ends_within_the_grace(
    orchestrator: WorkerOrchestrator, tmp_path: Path
) -> None:
    started = asyncio.Event()
    orchestrator.model = in_turn(call(("c1", "shell", {})))
    worker = worker_of(orchestrator, tmp_path, shell(started, asyncio.Event()), grace_s=4.0)
    running = asyncio.create_task(worker.run())
    await within(20.0, started.wait())
    await asyncio.to_thread(orchestrator.stop)
    worker.stop()
    assert await within(30.0, running) == 1
    assert b"+half" in (tmp_path / "state" / "changes.patch").read_bytes()


async def test_sigterm_before_the_workspace_is_there_reports_cancelled(
    orchestrator: WorkerOrchestrator, tmp_path: Path
) -> None:
    release = threading.Event()
    orchestrator.fail("workspace", Hang(release))
    worker = worker_of(orchestrator, tmp_path)
    running = asyncio.create_task(worker.run())
    await eventually(lambda: orchestrator.requests("workspace"))
    worker.stop()
    assert await within(15.0, running) == 0
    release.set()
    assert orchestrator.report is not None
    assert orchestrator.report["outcome"] == "cancelled"


async def test_a_workspace_that_can_not_be_unpacked_is_reported_as_the_reason(
    orchestrator: WorkerOrchestrator, tmp_path: Path
) -> None:
    orchestrator.workspace = tar_of({"../evil": b"x"})
    assert await worker_of(orchestrator, tmp_path).run() == 0
    assert orchestrator.report is not None
    assert orchestrator.report["outcome"] == "failed"
    assert "does not stay inside" in orchestrator.report["reason"]
    assert orchestrator.changes == b""
    assert not (tmp_path / "evil").exists()


async def test_without_a_catalogue_the_job_fails_and_no_model_is_asked(
    orchestrator: WorkerOrchestrator, tmp_path: Path
) -> None:
    orchestrator.fail("tools/catalog", Refuse(500, "internal"))
    assert await worker_of(orchestrator, tmp_path).run() == 0
    assert orchestrator.report is not None
    assert "catalogue" in orchestrator.report["reason"]
    assert orchestrator.requests("llm/complete_with_tools") == []


async def test_credentials_reach_the_tools_and_nobody_else(
    orchestrator: WorkerOrchestrator, tmp_path: Path
) -> None:
    """Loop 26: a granted secret is usable, and what prints it is redacted, not dropped."""
    orchestrator.credentials = [{"env_var": "GH_TOKEN", "value": "s3cr3t-value"}]
    given: dict[str, str] = {}

    async def env(_params: dict[str, Any]) -> str:
        return f"token is {given['GH_TOKEN']}, ok"

    def make(_workspace: Path, granted: Granted, _output: Path) -> LocalToolSet:
        given.update(granted.environment)
        return LocalToolSet(LocalTool("shell", env))

    orchestrator.model = in_turn(call(("c1", "shell", {"echo": "s3cr3t-value"})))
    settings = settings_of(orchestrator, tmp_path)
    assert await HostedWorker(settings, make, SystemClock()).run() == 0
    assert given == {"GH_TOKEN": "s3cr3t-value"}
    result = orchestrator.requests("llm/complete_with_tools")[1].json["messages"][-1]
    assert result["content"] == "token is [redacted:GH_TOKEN], ok"
    assert "s3cr3t-value" not in json.dumps(orchestrator.events)


async def test_a_broken_connection_at_the_end_loses_neither_changes_nor_report(
    orchestrator: WorkerOrchestrator, tmp_path: Path
) -> None:
    orchestrator.fail("workspace/changes", Drop(), Page(503))
    orchestrator.fail("complete", Drop())
    orchestrator.model = in_turn(call(("c", "write_file", {"path": "a", "content": "x\n"})))
    assert await worker_of(orchestrator, tmp_path, writer).run() == 0
    assert orchestrator.report is not None
    assert orchestrator.report["outcome"] == "completed"
    assert orchestrator.changes is not None
    assert b"+x" in orchestrator.changes


async def test_a_job_that_ended_elsewhere_stops_the_worker(
    orchestrator: WorkerOrchestrator, tmp_path: Path
) -> None:
    def model(_request: dict[str, Any]) -> dict[str, Any]:
        orchestrator.over = True
        return call(("c", "write_file", {"path": "a", "content": "x"}))

    orchestrator.model = model
    assert await within(20.0, worker_of(orchestrator, tmp_path, writer).run()) == 1
    assert orchestrator.report is None


async def test_the_first_request_on_the_wire_carries_the_catalogues_schemas(
    orchestrator: WorkerOrchestrator, tmp_path: Path
) -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "title": "Ü",
        "$defs": {"z": {}, "a": {}},
        "properties": {"n": {"minimum": 1.50}},
    }
    orchestrator.advertise("odd", lambda _params: 1, schema)
    orchestrator.instructions = ["Instructions from odd: use it"]
    assert await worker_of(orchestrator, tmp_path, writer).run() == 0
    sent = orchestrator.requests("llm/complete_with_tools")[0].json
    (tool,) = [one for one in sent["tools"] if one["name"] == "odd"]
    assert json.dumps(tool) == json.dumps(orchestrator.definitions[0])
    (contract,) = orchestrator.of_type("contract")
    assert contract["identical"] is True


async def test_the_result_of_a_job_is_the_models_text_and_its_status_is_reported(
    orchestrator: WorkerOrchestrator, tmp_path: Path
) -> None:
    """Loop 32: a text without calls ends the job, whatever words it uses."""
    orchestrator.model = in_turn(say("Fixed it, I think."))
    assert await worker_of(orchestrator, tmp_path).run() == 0
    assert orchestrator.report is not None
    assert (orchestrator.report["outcome"], orchestrator.report["message"]) == (
        "completed",
        "Fixed it, I think.",
    )
    states = [one.json["state"] for one in orchestrator.requests("status")]
    assert states == ["starting", "running", "finishing"]
    assert not orchestrator.token_file.exists()

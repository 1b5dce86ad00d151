"""A session of the loop over a transport in memory."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.fakes.local_tools import LocalTool
from tests.fakes.transport import MemoryTransport
from tool_registry.tool import Tool
from worker.clock import SystemClock
from worker.ending import LoopEnd
from worker.protocol.job import AgentIdentity, JobDescription, JobLimits
from worker.protocol.tools import (
    WireToolDefinition,
)
from worker.session import Session, SessionSettings


def job_of(*, deadline_s: float = 60.0, **limits: Any) -> JobDescription:
    deadline_at = datetime.now(UTC) + timedelta(seconds=deadline_s)  # noqa: TID251
    return JobDescription(
        job_id="j",
        title="t",
        task="the task",
        agent=AgentIdentity(name="coder", instance_id="i", network="local"),
        limits=JobLimits(deadline_at=deadline_at, **limits),
        protocol_version="1",
    )


def session_of(
    transport: MemoryTransport, tmp_path: Path, job: JobDescription | None = None, **settings: Any
) -> Session:
    return Session(
        job or job_of(),
        transport,
        SessionSettings("/workspace", 1, tmp_path / "out", **settings),
        clock=SystemClock(),
    )


async def run(
    transport: MemoryTransport,
    tmp_path: Path,
    *tools: Tool,
    job: JobDescription | None = None,
    **settings: Any,
) -> LoopEnd:
    session = session_of(transport, tmp_path, job, **settings)
    end = await session.run(tools)
    assert await session.events.flush(5.0)
    return end


def echo(name: str = "echo", *, read_only: bool = False) -> LocalTool:
    async def act(params: dict[str, Any]) -> Any:
        return params

    return LocalTool(name, act, read_only=read_only)


def remote(name: str, parameters: dict[str, Any] | None = None) -> WireToolDefinition:
    schema = parameters or {"type": "object", "properties": {}}
    return WireToolDefinition(name=name, description=f"does {name}", parameters=schema)

"""The operator API for jobs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import Response, StreamingResponse

from orchestrator.domain.jobs import Job, JobState
from orchestrator.domain.launch_wishes import launched_as
from orchestrator.http.auth import OperatorGate
from orchestrator.http.bodies import stream_body
from orchestrator.http.contract_messages import ContractView
from orchestrator.http.gated import gated
from orchestrator.http.job_messages import (
    CallView,
    EventView,
    JobRequest,
    JobView,
    PromptRequest,
    WorkspaceView,
)
from orchestrator.ports.audit import AuditStore
from orchestrator.ports.events import StoredEvent
from orchestrator.services.agent_desk import AgentDesk
from orchestrator.services.audit_log import AuditLog
from orchestrator.services.contracts import Contracts
from orchestrator.services.jobs import JobService
from orchestrator.services.timeline import Timeline

_MAX_CALLS = 5_000
_MAX_OFFSET = 2**62
_KEEPALIVE_S = 10.0
_LAST_WORD_S = 0.2


@dataclass(frozen=True, slots=True)
class JobDefaults:
    """What a job gets that names none of its own."""

    agent: str
    network: str
    model: str


@dataclass(frozen=True, slots=True)
class OperatorServices:
    """What the routes call."""

    gate: OperatorGate
    jobs: JobService
    agents: AgentDesk
    timeline: Timeline
    audit: AuditStore
    audit_log: AuditLog
    contracts: Contracts
    defaults: JobDefaults


def jobs_router(services: OperatorServices) -> APIRouter:
    """Every job route for operators."""
    router = APIRouter(prefix="/api/v1", tags=["jobs"], route_class=gated(services.gate))
    _write_routes(router, services)
    _read_routes(router, services)
    _timeline_routes(router, services)
    return router


def _write_routes(router: APIRouter, services: OperatorServices) -> None:
    jobs, defaults = services.jobs, services.defaults

    @router.put("/workspaces", status_code=201, summary="Upload a starting workspace (tar)")
    async def put_workspace(request: Request) -> WorkspaceView:
        blob = await jobs.upload_workspace(stream_body(request))
        return WorkspaceView(sha256=blob.sha256, size_bytes=blob.size_bytes)

    @router.post("/jobs", status_code=201, summary="Run a job")
    async def post_job(asked: JobRequest) -> JobView:
        spec = asked.spec(agent=defaults.agent, network=defaults.network)
        launch = await services.agents.launch_settings(spec.network, spec.agent)
        spec = launched_as(spec, launch, asked.default_model or defaults.model)
        return JobView.of(await jobs.create(spec, new_agent=True))

    @router.post("/jobs/{job_id}/cancel", status_code=202, summary="Ask a job to end")
    async def cancel(job_id: str) -> JobView:
        return JobView.of(await jobs.cancel(job_id))

    @router.post("/jobs/{job_id}/prompt", status_code=202, summary="Say something to a running job")
    async def prompt(job_id: str, asked: PromptRequest) -> None:
        await jobs.prompt(job_id, asked.text)

    @router.delete("/jobs/{job_id}", status_code=204, summary="Forget a job that has ended")
    async def delete(job_id: str) -> None:
        await jobs.remove(job_id)


def _read_routes(router: APIRouter, services: OperatorServices) -> None:
    jobs = services.jobs

    @router.get("/jobs", summary="Jobs, newest first")
    async def get_jobs(
        state: Annotated[list[JobState] | None, Query()] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> list[JobView]:
        return [JobView.of(job) for job in await jobs.list(states=state, limit=limit)]

    @router.get("/jobs/{job_id}", summary="One job")
    async def get_job(job_id: str) -> JobView:
        return JobView.of(await jobs.get(job_id))

    @router.get("/jobs/{job_id}/diff", summary="The job's patch")
    async def get_diff(job_id: str) -> Response:
        job = await jobs.get(job_id)
        return StreamingResponse(jobs.changes(job), media_type="text/x-diff")

    @router.get("/jobs/{job_id}/workspace", summary="What the job began with (tar), or a part of it")
    async def get_start(
        job_id: str,
        offset: Annotated[int, Query(ge=0, le=_MAX_OFFSET)] = 0,
        limit: Annotated[int | None, Query(ge=1, le=_MAX_OFFSET)] = None,
    ) -> Response:
        start = jobs.start(await jobs.get(job_id), offset=offset, limit=limit)
        return StreamingResponse(start, media_type="application/x-tar")

    @router.get("/jobs/{job_id}/calls", summary="The job's tool calls and their verdicts")
    async def get_calls(job_id: str) -> list[CallView]:
        job = await jobs.get(job_id)
        await services.audit_log.flush()
        first = {row.tool_name: row for row in await services.audit.first_calls(job.id)}
        # A call that a worker could not send is recorded when its events come: by then others may be.
        rows = sorted(await services.audit.read(job_id=job.id, limit=_MAX_CALLS), key=lambda row: row.at)
        return [CallView.of(row, first_call=first.get(row.tool_name) == row) for row in rows]

    @router.get("/jobs/{job_id}/contract", summary="What its model was shown, and each tool's first call")
    async def get_contract(job_id: str) -> ContractView:
        job = await jobs.get(job_id)
        return ContractView.of(job, await services.contracts.of(job.id))


def _timeline_routes(router: APIRouter, services: OperatorServices) -> None:
    @router.get("/jobs/{job_id}/events", summary="The timeline: a page, or live as server-sent events")
    async def get_events(
        job_id: str,
        after: Annotated[int, Query(ge=0)] = 0,
        accept: Annotated[str, Header()] = "",
        last_event_id: Annotated[int | None, Header()] = None,
    ) -> Response:
        job = await services.jobs.get(job_id)
        after = max(after, last_event_id or 0)
        if "text/event-stream" in accept:
            stream = _live(services, job, after)
            return StreamingResponse(
                stream, media_type="text/event-stream", headers={"Cache-Control": "no-store"}
            )
        page = await services.timeline.read(job.id, after=after)
        body = json.dumps([_view(event).model_dump(mode="json") for event in page], ensure_ascii=False)
        return Response(body, media_type="application/json")


async def _live(services: OperatorServices, job: Job, after: int) -> AsyncIterator[bytes]:
    """Events as they come; ends after the last one of a job that has ended."""
    timeline, settled = services.timeline, False
    while True:
        watch = timeline.watch(job.id)
        ended = await services.jobs.ended(job.id)
        page = await timeline.read(job.id, after=after)
        if page:
            after = page[-1].position
            yield b"".join(map(_sse, page))
        elif timeline.closed or settled:
            return
        elif ended:
            # A job ends before its last event is written, but not long before.
            await watch.changed(_LAST_WORD_S)
            settled = True
        elif not await watch.changed(_KEEPALIVE_S):
            yield b": nothing new\n\n"


def _sse(event: StoredEvent) -> bytes:
    data = _view(event).model_dump_json()
    return f"id: {event.position}\nevent: {event.type}\ndata: {data}\n\n".encode()


def _view(event: StoredEvent) -> EventView:
    return EventView(
        position=event.position, source=event.source, type=event.type, at=event.at, data=event.data
    )

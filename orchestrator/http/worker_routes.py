"""The worker API, but for the hot route and the model."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from orchestrator.domain.jobs import Job
from orchestrator.errors import BadRequest
from orchestrator.http.auth import bearer_token, caller_job, check_socket, worker_gate
from orchestrator.http.bodies import stream_body
from orchestrator.http.gated import Gate, gated
from orchestrator.ports.deliveries import PendingDelivery
from orchestrator.ports.events import NewEvent
from orchestrator.services.catalogues import Catalogues
from orchestrator.services.first_catalogue import FirstCatalogue
from orchestrator.services.outputs import Outputs
from orchestrator.services.reports import Completion, WorkerReports
from orchestrator.services.tokens import TokenService
from worker.protocol import paths
from worker.protocol.events import EventBatch
from worker.protocol.job import (
    AgentIdentity,
    CompletionAnswer,
    CompletionReport,
    Credential,
    Deliveries,
    JobDescription,
    JobLimits,
    StatusReport,
    TokenAnswer,
    WorkspaceInfo,
)
from worker.protocol.tools import Catalog

_PREFIX = "/worker/{job_id}"
_MAX_OFFSET = 2**40


@dataclass(frozen=True, slots=True)
class WorkerServices:
    """What the routes call."""

    tokens: TokenService
    reports: WorkerReports
    catalogues: Catalogues
    first_catalogue: FirstCatalogue
    outputs: Outputs


def worker_router(services: WorkerServices) -> APIRouter:
    """Every worker route that FastAPI serves."""
    router = _router(worker_gate(services.tokens))
    _job_routes(router, services)
    _report_routes(router, services)
    _tool_routes(router, services)
    last_word = _router(worker_gate(services.tokens, ended=True))
    _last_word_route(last_word, services)
    renewal = APIRouter(prefix=_PREFIX, tags=["worker"])
    _renewal_route(renewal, services)
    router_of_all = APIRouter()
    for one in (router, last_word, renewal):
        router_of_all.include_router(one)
    return router_of_all


def _router(gate: Gate) -> APIRouter:
    return APIRouter(prefix=_PREFIX, tags=["worker"], route_class=gated(gate))


def _job_routes(router: APIRouter, services: WorkerServices) -> None:
    @router.get(f"/{paths.JOB}", summary="The job, for its worker to start")
    async def get_job(job: Job = Depends(caller_job)) -> JobDescription:
        return _description(await services.reports.register(job))

    @router.get(f"/{paths.WORKSPACE}", summary="The starting workspace as a tar stream")
    async def get_workspace(job: Job = Depends(caller_job)) -> Response:
        chunks = services.reports.workspace(job)
        if chunks is None:
            return Response(status_code=204)
        return StreamingResponse(chunks, media_type="application/x-tar")

    @router.get(
        f"/{paths.CREDENTIALS}",
        summary="Secrets granted to the job's child processes",
        response_model=list[Credential],
    )
    async def get_credentials(job: Job = Depends(caller_job)) -> list[Credential] | Response:
        granted = await services.reports.credentials(job)
        if not granted:
            return Response(status_code=204)
        return [Credential(env_var=env_var, value=value) for env_var, value in granted]


def _renewal_route(router: APIRouter, services: WorkerServices) -> None:
    @router.post(f"/{paths.TOKEN_RENEW}", summary="A fresh token")
    async def renew(request: Request, job_id: str) -> TokenAnswer:
        check_socket(request.scope, job_id)
        issued = await services.tokens.renew(bearer_token(request.scope), job_id)
        return TokenAnswer(token=issued.token, expires_at=issued.expires_at)


def _report_routes(router: APIRouter, services: WorkerServices) -> None:
    @router.put(f"/{paths.WORKSPACE_CHANGES}", status_code=204, summary="The job's patch")
    async def put_changes(
        request: Request,
        job: Job = Depends(caller_job),
        content_digest: Annotated[str | None, Header()] = None,
    ) -> None:
        checked = _Digested(stream_body(request), content_digest)
        await services.reports.store_changes(job, checked.chunks())

    @router.post(f"/{paths.STATUS}", status_code=204, summary="Where the worker stands")
    async def post_status(report: StatusReport, job: Job = Depends(caller_job)) -> None:
        await services.reports.status(job, report.state, report.message, report.iteration)

    @router.post(f"/{paths.EVENTS}", status_code=204, summary="Events of the timeline")
    async def post_events(batch: EventBatch, job: Job = Depends(caller_job)) -> None:
        source = f"worker:{job.attempt}"
        await services.reports.events(
            job,
            [
                NewEvent(source, one.seq, one.type, one.at, one.data.model_dump(mode="json"))
                for one in batch.events
            ],
        )

    @router.get(f"/{paths.PROMPT}", summary="What waits for the job; a long poll", response_model=Deliveries)
    async def get_prompt(
        job: Job = Depends(caller_job),
        wait_s: Annotated[float, Query(ge=0, le=25)] = 0.0,
        ack: Annotated[list[str] | None, Query()] = None,
    ) -> Deliveries | Response:
        pending = await services.reports.deliveries(job, wait_s=wait_s, acks=ack or [])
        if not pending:
            return Response(status_code=204)
        return Deliveries.model_validate({"deliveries": [_delivery(one) for one in pending]})


def _last_word_route(router: APIRouter, services: WorkerServices) -> None:
    @router.post(f"/{paths.COMPLETE}", summary="The worker's last word")
    async def post_complete(report: CompletionReport, job: Job = Depends(caller_job)) -> CompletionAnswer:
        await services.reports.complete(
            job,
            Completion(report.outcome, report.reason, report.message, report.iterations, report.result),
        )
        return CompletionAnswer()


def _tool_routes(router: APIRouter, services: WorkerServices) -> None:
    @router.get(f"/{paths.TOOLS_CATALOG}", summary="The job's hosted-visible tools", response_model=Catalog)
    async def get_catalog(
        job: Job = Depends(caller_job), if_none_match: Annotated[str | None, Header()] = None
    ) -> Response:
        if if_none_match is None:
            await services.first_catalogue.ready(job)
        rendered = services.catalogues.for_job(job)
        etag = f'"{rendered.catalogue.version}"'
        known = {one.strip().removeprefix("W/") for one in (if_none_match or "").split(",")}
        if known & {etag, "*"}:
            return Response(status_code=304, headers={"ETag": etag})
        return Response(rendered.body, media_type="application/json", headers={"ETag": etag})

    @router.get("/artifacts/{artifact_id}", summary="A large output of this job, or a part of it")
    async def get_artifact(
        artifact_id: str,
        job: Job = Depends(caller_job),
        offset: Annotated[int, Query(ge=0, le=_MAX_OFFSET)] = 0,
        limit: Annotated[int | None, Query(ge=1, le=_MAX_OFFSET)] = None,
    ) -> Response:
        artifact = await services.outputs.find(job.id, artifact_id)
        chunks = services.outputs.read(artifact, offset=offset, limit=limit)
        headers = {"X-Total-Bytes": str(artifact.size_bytes)}
        return StreamingResponse(chunks, media_type=artifact.media_type, headers=headers)


def _delivery(pending: PendingDelivery) -> dict[str, str | None]:
    return {
        "delivery_id": pending.id,
        "kind": pending.kind,
        "text": pending.text,
        "thread_id": pending.thread_id,
        "task_id": pending.task_id,
    }


def _description(job: Job) -> JobDescription:
    spec = job.spec
    if job.deadline_at is None:
        message = "a registered job has a deadline"
        raise RuntimeError(message)
    return JobDescription(
        job_id=job.id,
        title=spec.title,
        task=spec.task,
        command=spec.command,
        attempt=job.attempt,
        agent=AgentIdentity(name=spec.agent, instance_id=job.instance_id, network=spec.network),
        model=spec.model or None,
        system_prompt=spec.system_prompt,
        coerce="safe" if spec.coerce_safe else "never",
        allow_hosts=list(spec.allow_hosts),
        limits=JobLimits(
            max_iterations=spec.max_iterations, deadline_at=job.deadline_at, max_tokens=spec.max_tokens
        ),
        workspace=WorkspaceInfo(sha256=spec.workspace_sha256, size_bytes=spec.workspace_bytes),
        protocol_version=paths.PROTOCOL_VERSION,
    )


class _Digested:
    """A stream held to the `Content-Digest: sha-256=:...:` that came with it (RFC 9530)."""

    def __init__(self, chunks: AsyncIterator[bytes], header: str | None) -> None:
        self._chunks = chunks
        self._header = header

    async def chunks(self) -> AsyncIterator[bytes]:
        """The same bytes.

        Raises:
            BadRequest: after the last byte, when they are not what was announced.
        """
        digest = hashlib.sha256()
        async for chunk in self._chunks:
            digest.update(chunk)
            yield chunk
        if self._header is None:
            raise BadRequest(f"{paths.CONTENT_DIGEST} is missing; send sha-256=:<base64>:")
        if self._header.strip() != content_digest(digest.digest()):
            raise BadRequest(f"the body does not match its {paths.CONTENT_DIGEST}; send it again")


def content_digest(sha256: bytes) -> str:
    """The header's value for a digest."""
    return f"sha-256=:{b64encode(sha256).decode()}:"

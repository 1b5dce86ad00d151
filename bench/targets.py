"""The servers that are measured, each in a process of its own: `python -m bench.targets NAME HOME`.

All listen through the same socket class, uvicorn's httptools protocol on uvloop, and say on standard output
where. Then every line on standard input is answered with the CPU seconds that the process has used so far.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import resource
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jwt
import structlog
import uvloop
from fastapi import Depends, FastAPI, Header
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import SecretStr
from starlette.types import ASGIApp, Receive, Scope, Send

from bench.process import ANSWER_FILE, Address
from bench.tools import OWNER, SCHEMA, trivial_tools
from orchestrator.adapters.db.stores import open_stores
from orchestrator.adapters.ids.uuid7 import Uuid7Ids
from orchestrator.adapters.secrets.master_key import MasterKey
from orchestrator.adapters.secrets.sealing import AesGcmSealer
from orchestrator.adapters.sockets.unix import SOCKET_NAME, UnixJobSockets, UnixSocket
from orchestrator.domain.jobs import Job, JobId, JobSpec, JobState
from orchestrator.http.auth import SOCKET_JOB
from orchestrator.main import open_desk
from orchestrator.services.active_jobs import ActiveJobs
from orchestrator.services.signing import TokenSigner
from orchestrator.services.tokens import TokenService
from orchestrator.settings import Settings
from tool_registry.registry import Offer
from tool_registry.schema import CompiledSchema
from worker.clock import SystemClock
from worker.protocol.tools import ExecuteAnswer, ExecuteRequest, WireToolOutput

_SECRET = "a secret of thirty-two bytes or more"


@asynccontextmanager
async def portside(home: Path) -> AsyncGenerator[Address]:
    """The product as it is wired, with one running job; nothing looks after containers, no call needs one."""
    settings = Settings(home=home, database_url="").model_copy(
        update={"openai_api_key": SecretStr("a-key-to-look-for-in-texts")}
    )
    orchestrator = await open_desk(settings, tools=False)
    orchestrator.registry.replace(OWNER, [Offer(tool) for tool in trivial_tools()])
    sockets = UnixJobSockets(home / "jobs", mark=SOCKET_JOB)
    sockets.serve(orchestrator.app)
    try:
        job, token = await _running_job(settings)
        directory = await sockets.open(job.id, None)
        yield Address(str(directory / SOCKET_NAME), job.id, token)
    finally:
        await sockets.close_all()
        await orchestrator.close()


async def _running_job(settings: Settings) -> tuple[Job, str]:
    clock, ids = SystemClock(), Uuid7Ids()
    sealer = AesGcmSealer(MasterKey.load(settings.home))
    stores = await open_stores(settings.database, sealer=sealer, clock=clock)
    job = Job(
        id=JobId(ids.new()),
        spec=JobSpec(title="bench", task="call echo"),
        state=JobState.RUNNING,
        created_at=clock.now(),
        instance_id=ids.new(),
        attempt=1,
    )
    await stores.jobs.add(job)
    signer = TokenSigner(stores.signing_keys, clock, ids)
    await signer.load()
    tokens = TokenService(signer, ActiveJobs(stores.jobs, clock), clock)
    token = tokens.issue(job, job.attempt).token
    await stores.close()
    return job, token


@asynccontextmanager
async def bare(home: Path) -> AsyncGenerator[Address]:
    """Reads the body, answers fixed bytes: what uvicorn alone costs."""
    answer = (home / ANSWER_FILE).read_bytes()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]

    async def app(_scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    async with _listening(app, home) as socket:
        yield Address(socket, "job", "token")


@asynccontextmanager
async def fastapi(home: Path) -> AsyncGenerator[Address]:
    """The same call as a plain FastAPI route, for comparison: no idempotency, rate limit or audit."""
    app = FastAPI()
    schema = CompiledSchema(json.dumps(SCHEMA))
    token = jwt.encode({"sub": "job"}, _SECRET, algorithm="HS256")
    bearer = HTTPBearer()

    async def caller(credentials: HTTPAuthorizationCredentials = Depends(bearer)) -> dict[str, Any]:
        return jwt.decode(credentials.credentials, _SECRET, algorithms=["HS256"])

    @app.post("/worker/{job_id}/tools/execute")
    async def execute(
        job_id: str,
        call: ExecuteRequest,
        claims: dict[str, Any] = Depends(caller),
        idempotency_key: str = Header(),
    ) -> ExecuteAnswer:
        if claims["sub"] != job_id or not schema.accepts(call.params) or not idempotency_key:
            raise ValueError(call.tool_name)
        output = WireToolOutput(result={"text": call.params["text"]}, is_error=False)
        return ExecuteAnswer(output=output, catalog_version="sha256:" + "0" * 64)

    async with _listening(app, home) as socket:
        yield Address(socket, "job", token)


@asynccontextmanager
async def _listening(app: ASGIApp, home: Path) -> AsyncGenerator[str]:
    socket = UnixSocket(app, home / SOCKET_NAME, mode=0o600)
    await socket.open()
    try:
        yield str(home / SOCKET_NAME)
    finally:
        await socket.close()


Target = Callable[[Path], AbstractAsyncContextManager[Address]]
TARGETS: dict[str, Target] = {"bare": bare, "portside": portside, "fastapi": fastapi}


async def serve(target: Target, home: Path) -> None:
    """Serve until standard input ends."""
    lines = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    async with target(home) as address:
        gc.freeze()  # as the orchestrator does when it has started
        print(json.dumps(asdict(address)), flush=True)
        while await lines.readline():
            used = resource.getrusage(resource.RUSAGE_SELF)
            print(used.ru_utime + used.ru_stime, flush=True)


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    uvloop.run(serve(TARGETS[sys.argv[1]], Path(sys.argv[2])))

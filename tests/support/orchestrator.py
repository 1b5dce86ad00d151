"""The whole orchestrator over SQLite and an engine in memory: all is real but containers and models."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest

from container.engine.sandbox import WorkerStart
from orchestrator.adapters.db.stores import Stores, open_stores
from orchestrator.adapters.secrets.master_key import MasterKey
from orchestrator.adapters.secrets.sealing import AesGcmSealer
from orchestrator.domain.jobs import Job, JobId
from orchestrator.http.worker_routes import content_digest
from orchestrator.main import Orchestrator, start_over
from orchestrator.settings import Settings
from orchestrator.wiring.jobs import Outside
from tests.fakes.engine import FakeEngine
from tests.fakes.model import CapturingModel
from tests.fakes.tools import OWNER, SECRET, FakeTools
from tests.support.homes import remove_sockets
from worker.clock import SystemClock

MODEL = "scripted:model"
IMAGE = "portside-worker:test"
ENDED = {"completed", "failed", "cancelled", "timed_out", "lost"}


async def _start_in(image: str) -> WorkerStart:
    return WorkerStart(image or IMAGE)


def http_over(app: Any = None, *, socket: Path | None = None, token: str = "") -> httpx.AsyncClient:
    """A client of the app itself, or of a unix socket in front of it."""
    over: httpx.AsyncBaseTransport = (
        httpx.AsyncHTTPTransport(uds=str(socket), verify=False)
        if socket
        else httpx.ASGITransport(app, raise_app_exceptions=False)
    )
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return httpx.AsyncClient(transport=over, base_url="http://portside", headers=headers, timeout=30.0)


class WorkerHands:
    """A worker's side of the wire, one request at a time, over its job's own socket."""

    def __init__(self, http: httpx.AsyncClient, job_id: str, token: str, socket: Path) -> None:
        self.http = http
        self.job_id = job_id
        self.token = token
        self.socket = socket

    async def get(self, name: str, **options: Any) -> httpx.Response:
        return await self.http.get(f"/worker/{self.job_id}/{name}", **options)

    async def post(self, name: str, body: Any = None, **options: Any) -> httpx.Response:
        return await self.http.post(f"/worker/{self.job_id}/{name}", json=body, **options)

    async def execute(self, tool: str, params: Any = None, *, key: str | None = None) -> httpx.Response:
        headers = {"Idempotency-Key": key} if key else {}
        return await self.post("tools/execute", {"tool_name": tool, "params": params or {}}, headers=headers)

    async def upload_changes(self, patch: bytes = b"", *, digest: str | None = None) -> httpx.Response:
        shown = content_digest(sha256(patch).digest()) if digest is None else digest
        headers = {"Content-Digest": shown} if shown else {}
        return await self.http.put(f"/worker/{self.job_id}/workspace/changes", content=patch, headers=headers)

    async def complete(self, outcome: str = "completed", **more: Any) -> httpx.Response:
        return await self.post("complete", {"outcome": outcome, **more})

    async def finish(self, outcome: str = "completed", **more: Any) -> None:
        """Upload an empty patch and report."""
        assert (await self.upload_changes()).status_code == 204
        assert (await self.complete(outcome, **more)).status_code == 200


@dataclass
class Wired:
    """A running orchestrator and the hands to work it with.

    Attributes:
        operator: a client over the API socket, with the operator's token.
        stores: its database, opened a second time, to look into.
    """

    settings: Settings
    running: Orchestrator
    engine: FakeEngine
    model: CapturingModel
    tools: FakeTools
    stores: Stores
    operator: httpx.AsyncClient
    stack: AsyncExitStack

    async def new_job(self, **asked: Any) -> str:
        answer = await self.operator.post("/api/v1/jobs", json={"task": "do it", "model": MODEL, **asked})
        assert answer.status_code == 201, answer.text
        return answer.json()["id"]

    async def launched(self, **asked: Any) -> str:
        """A new job with a running sandbox."""
        job_id = await self.new_job(**asked)
        await self.until(job_id, lambda job: job.sandbox_id is not None)
        return job_id

    async def worker(self, job_id: str | None = None, *, register: bool = True, **asked: Any) -> WorkerHands:
        """The worker of a job, as it comes up in its sandbox."""
        job_id = job_id or await self.launched(**asked)
        await self.until(job_id, lambda job: job.sandbox_id is not None)
        directory = self.engine.sandbox(self.sandbox(job_id)).spec.socket_dir
        assert directory is not None
        token = await asyncio.to_thread((directory / "token").read_text)
        http = await self.stack.enter_async_context(http_over(socket=directory / "s", token=token))
        hands = WorkerHands(http, job_id, token, directory / "s")
        if register:
            assert (await hands.get("job")).status_code == 200
        return hands

    def sandbox(self, job_id: str, attempt: int = 1) -> str:
        return f"portside-{job_id}-{attempt}"

    async def job(self, job_id: str) -> Job:
        job = await self.stores.jobs.get(JobId(job_id))
        assert job is not None
        return job

    async def until(self, job_id: str, holds: Callable[[Job], object], within_s: float = 10.0) -> Job:
        """The job, as soon as the condition holds for it."""
        async with asyncio.timeout(within_s):
            while not holds(job := await self.job(job_id)):  # noqa: ASYNC110 - another process writes it
                await asyncio.sleep(0.01)
        return job

    async def ended(self, job_id: str, within_s: float = 10.0) -> Job:
        return await self.until(job_id, lambda job: job.state.terminal, within_s)

    async def events(self, job_id: str, kind: str | None = None) -> list[dict[str, Any]]:
        answer = await self.operator.get(f"/api/v1/jobs/{job_id}/events")
        return [one["data"] for one in answer.json() if kind in {None, one["type"]}]


def settings_in(home: Path, **changes: Any) -> Settings:
    given: dict[str, Any] = {"home": home, "stop_grace_s": 0.2, "OPENAI_API_KEY": SECRET, "model": MODEL}
    given |= changes
    return Settings(**given)


@asynccontextmanager
async def wired(
    home: Path,
    *,
    engine: FakeEngine | None = None,
    model: CapturingModel | None = None,
    tools: FakeTools | None = None,
    **changes: Any,
) -> AsyncGenerator[Wired]:
    """A running orchestrator; leaving the context ends it as SIGTERM would."""
    settings = settings_in(home, **changes)
    engine, model, tools = engine or FakeEngine(), model or CapturingModel(), tools or FakeTools()
    async with AsyncExitStack() as stack:
        running = await start_over(settings, Outside(engine, _start_in, {"scripted": model}))
        stack.push_async_callback(running.close)
        running.registry.replace(OWNER, tools.offers())
        master = await asyncio.to_thread(MasterKey.load, home, None)
        stores = await open_stores(settings.database, sealer=AesGcmSealer(master), clock=SystemClock())
        stack.push_async_callback(stores.close)
        token = await asyncio.to_thread(settings.operator_token_file.read_text)
        operator = await stack.enter_async_context(http_over(socket=settings.api_socket, token=token))
        yield Wired(settings, running, engine, model, tools, stores, operator, stack)


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> Iterator[Path]:
    """A state directory of this test's own, its database migrated already."""
    made = tmp_path_factory.mktemp("h")
    shutil.copyfile(sqlite_template, made / "portside.db")
    yield made
    remove_sockets(made)


@pytest.fixture
async def orchestrator(home: Path) -> AsyncIterator[Wired]:
    """A running orchestrator of this test's own."""
    async with wired(home) as running:
        yield running


def problem(response: httpx.Response) -> Mapping[str, Any]:
    """The one shape of every error, checked."""
    assert response.headers["content-type"] == "application/problem+json", response.text
    body = response.json()
    assert {"type", "title", "status", "code", "detail", "retryable"} <= body.keys()
    assert body["status"] == response.status_code
    leaked: Sequence[str] = ("Traceback", 'File "', "/site-packages/", "orchestrator.services", SECRET)
    assert not [mark for mark in leaked if mark in response.text]
    return body

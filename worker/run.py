"""A hosted job from start to end: workspace in, conversation, changes out, report."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import anyio
import httpx

from tool_registry.clock import Clock
from tool_registry.errors import PortsideError
from tool_registry.redaction import Redactor
from tool_registry.tool import Tool
from worker.archive import unpack
from worker.changes import Baseline
from worker.client import WorkerClient
from worker.egress.line import EgressLine
from worker.egress.proxy import EgressProxy
from worker.ending import LoopEnd
from worker.errors import job_is_over
from worker.explainer import SubprocessExplainer
from worker.hand_over import HandOver
from worker.protocol.job import JobDescription, StatusReport
from worker.relay.upstream import Upstream
from worker.retry import RetryPolicy
from worker.session import Session, SessionSettings
from worker.settings import Settings
from worker.token import Token, keep_fresh, read_token
from worker.tools.environment import child_environment

if TYPE_CHECKING:
    from worker.command.session import CommandSession

_LEAST_FINISH_S = 60.0
_ASKED_TO_STOP = "the container was asked to stop"
_LOG = logging.getLogger("portside.worker")


class LocalTools(Protocol):
    """The container's own tools, and what they hold."""

    @property
    def tools(self) -> Sequence[Tool]:
        """The tools."""
        ...

    async def close(self) -> None:
        """End what they started."""
        ...


@dataclass(frozen=True, slots=True)
class Granted:
    """What a job's commands were given.

    Attributes:
        environment: variables: granted secrets, and the proxy to allowed hosts.
        refusals: why connections were refused since it was asked last.
    """

    environment: Mapping[str, str]
    refusals: Callable[[], list[str]] = list[str]


ToolFactory = Callable[[Path, Granted, Path], LocalTools]


class HostedWorker:
    """Runs one job against an orchestrator.

    `make_tools(workspace, granted, output_dir)` makes the local tools.
    """

    def __init__(self, settings: Settings, make_tools: ToolFactory, clock: Clock) -> None:
        self._settings = settings
        self._make_tools = make_tools
        self._clock = clock
        self._stopped_at: float | None = None
        self._job: JobDescription | None = None
        self._baseline: Baseline | None = None
        self._session: Session | CommandSession | None = None
        self._line: Upstream | None = None
        self._way_out: EgressLine | None = None
        self._conversing = False
        self._work: asyncio.Task[LoopEnd] | None = None

    def stop(self) -> None:
        """What SIGTERM does: stop the tool, hand over what changed, report, within the grace."""
        if self._stopped_at is not None:
            return
        self._stopped_at = self._clock.monotonic()
        if self._conversing and self._session is not None:
            self._session.stop("cancelled", _ASKED_TO_STOP)
        elif self._work is not None:
            self._work.cancel()

    async def run(self) -> int:
        """Run the job.

        Returns:
            The exit code: 0 when the orchestrator has the job's outcome, 1 when it could not be told.
        """
        token = read_token(self._settings.token_file)
        async with _http(self._settings.socket) as http:
            policy = RetryPolicy(outage_s=self._settings.outage_s)
            client = WorkerClient(http, self._settings.job_id, token, clock=self._clock, policy=policy)
            self._line = Upstream(
                lambda: _http(self._settings.socket),
                self._settings.job_id,
                token,
                renew=client.renew_token,
                clock=self._clock,
                outage_s=self._settings.outage_s,
            )
            self._way_out = EgressLine(
                self._settings.socket, token, renew=client.renew_token, clock=self._clock
            )
            renewal = asyncio.create_task(self._renew(client, token))
            try:
                return await self._run(client)
            finally:
                renewal.cancel()
                await asyncio.gather(renewal, return_exceptions=True)

    async def _renew(self, client: WorkerClient, token: Token) -> None:
        error = await keep_fresh(token, client.renew_token, anyio.sleep)
        if self._session is not None:
            self._session.stop("cancelled", error.message)

    async def _run(self, client: WorkerClient) -> int:
        self._work = asyncio.create_task(self._begin_and_converse(client))
        try:
            await asyncio.wait({self._work})
        finally:
            self._work.cancel()  # nothing when it has ended
        end = self._ended(self._work)
        return 1 if end is None else await self._hand_over(client, end)

    def _ended(self, work: asyncio.Task[LoopEnd]) -> LoopEnd | None:
        """How the work ended; None when there is nobody to report it to."""
        if work.cancelled():
            return LoopEnd("cancelled", _ASKED_TO_STOP)
        try:
            return work.result()
        except (PortsideError, OSError) as error:
            _LOG.error("%s", error)
            if self._job is None or (isinstance(error, PortsideError) and job_is_over(error)):
                return None
            return LoopEnd("failed", f"the worker failed during start-up: {error}")
        except Exception as error:  # noqa: BLE001 - a bug must still end the job with what was done so far
            _LOG.exception("the worker broke")
            return LoopEnd("failed", f"the worker broke ({type(error).__name__}); its log has the cause")

    async def _begin_and_converse(self, client: WorkerClient) -> LoopEnd:
        job = self._job = await client.job()
        workspace = self._settings.workspace or Path(job.workspace.root)
        baseline = self._baseline = Baseline(workspace, self._settings.state_dir)
        await client.status(StatusReport(state="starting", iteration=0))
        credentials = {one.env_var: one.value for one in await client.credentials()}
        redactor = Redactor(credentials, patterns=False)
        async with self._granted(job, credentials) as granted:
            session = self._session = self._assemble(job, client, workspace, granted, redactor)
            client.line.notice = session.events.warn
            await self._fill(client, workspace, baseline, session)
            local = self._make_tools(workspace, granted, self._settings.output_dir)
            self._conversing = True
            try:
                return await session.run(local.tools)
            finally:
                await local.close()

    @asynccontextmanager
    async def _granted(self, job: JobDescription, credentials: Mapping[str, str]) -> AsyncGenerator[Granted]:
        """What the commands are given; every connection ends with the context."""
        if not job.allow_hosts:
            yield Granted(credentials)
            return
        assert self._way_out is not None
        proxy = EgressProxy(self._way_out)
        await proxy.open()
        try:
            yield Granted({**proxy.environment(), **credentials}, proxy.refusals)
        finally:
            await proxy.close()

    def _assemble(
        self,
        job: JobDescription,
        client: WorkerClient,
        workspace: Path,
        granted: Granted,
        redactor: Redactor,
    ) -> Session | CommandSession:
        settings = self._settings
        if job.command is not None:
            # a third of what the worker has to load, and most jobs have no command
            from worker.command.session import CommandSession, CommandSettings

            assert self._line is not None
            return CommandSession(
                job,
                client,
                self._line,
                CommandSettings(
                    workspace=workspace,
                    environment=child_environment(os.environ, granted.environment),
                    attempt=settings.attempt,
                    output_dir=settings.output_dir,
                    bridge=settings.bridge,
                    announced_in=settings.state_dir / "home" / ".config" / "portside",
                ),
                clock=self._clock,
                redactor=redactor,
                explainer=SubprocessExplainer(),
            )
        return Session(
            job,
            client,
            SessionSettings(str(workspace), settings.attempt, settings.output_dir, settings.context_tokens),
            clock=self._clock,
            redactor=redactor,
            explainer=SubprocessExplainer(),
        )

    async def _fill(
        self, client: WorkerClient, workspace: Path, baseline: Baseline, session: Session | CommandSession
    ) -> None:
        """Unpack the starting workspace and record it."""
        await anyio.Path(self._settings.state_dir, "home").mkdir(parents=True, exist_ok=True)
        await anyio.Path(workspace).mkdir(parents=True, exist_ok=True)
        archive = self._settings.state_dir / "workspace.tar"
        if await client.workspace(archive):
            unpacked = await anyio.to_thread.run_sync(unpack, archive, workspace, abandon_on_cancel=True)
            await anyio.Path(archive).unlink()
            if unpacked.skipped_links:
                left = ", ".join(unpacked.skipped_links[:20])
                session.events.warn(f"links out of the workspace were left out: {left}")
        await baseline.take()

    async def _hand_over(self, client: WorkerClient, end: LoopEnd) -> int:
        """Upload the changes, then report; both go on until the time is up."""
        baseline = self._baseline or Baseline(self._settings.state_dir, self._settings.state_dir)
        events = None if self._session is None else self._session.events
        try:
            async with asyncio.timeout(self._finish_s()):
                await HandOver(client, baseline, events).run(end)
        except (TimeoutError, PortsideError) as error:
            # Nobody is left to tell but the container's log; the patch stays in the state directory.
            _LOG.error("the outcome %s could not be reported: %s", end.outcome, error or "no time left")
            return 1
        return 0

    def _finish_s(self) -> float:
        """How long the hand-over may take: the rest of the grace, or of the job's time."""
        if self._stopped_at is not None:
            return max(self._settings.grace_s - (self._clock.monotonic() - self._stopped_at) - 1.0, 1.0)
        if self._job is None:
            return _LEAST_FINISH_S
        left_s = (self._job.limits.deadline_at - self._clock.now()).total_seconds()
        return max(left_s, _LEAST_FINISH_S)


def _http(socket: Path) -> httpx.AsyncClient:
    # Nothing is encrypted there: without `verify` no certificates are loaded.
    transport = httpx.AsyncHTTPTransport(uds=str(socket), verify=False)
    return httpx.AsyncClient(transport=transport, base_url="http://portside", trust_env=False)


async def run_until_done(worker: HostedWorker) -> int:
    """Run a worker that SIGTERM and SIGINT stop in good order."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, worker.stop)
    try:
        return await worker.run()
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)

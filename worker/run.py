"""A hosted job from start to end: workspace in, conversation, changes out, report."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import anyio
import httpx

from tool_registry.clock import Clock
from tool_registry.errors import PortsideError
from tool_registry.redaction import Redactor
from tool_registry.tool import Tool
from worker.archive import unpack
from worker.changes import Baseline, Patch
from worker.client import WorkerClient
from worker.errors import WorkspaceError, job_is_over
from worker.explainer import SubprocessExplainer
from worker.loop import LoopEnd
from worker.protocol.events import ResultData
from worker.protocol.job import CompletionReport, JobDescription, StatusReport
from worker.retry import RetryPolicy
from worker.session import Session, SessionSettings
from worker.settings import Settings
from worker.token import Token, keep_fresh, read_token

_LEAST_FINISH_S = 60.0
_FLUSH_S = 5.0
_MAX_REASON = 4_000
_MAX_MESSAGE = 65_000
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


ToolFactory = Callable[[Path, Mapping[str, str], Path], LocalTools]


class HostedWorker:
    """Runs one job against an orchestrator.

    `make_tools(workspace, credentials, output_dir)` makes the local tools.
    """

    def __init__(self, settings: Settings, make_tools: ToolFactory, clock: Clock) -> None:
        self._settings = settings
        self._make_tools = make_tools
        self._clock = clock
        self._stopped_at: float | None = None
        self._session: Session | None = None

    def stop(self) -> None:
        """What SIGTERM does: stop the tool, hand over what changed, report, within the grace."""
        if self._stopped_at is None:
            self._stopped_at = self._clock.monotonic()
            if self._session is not None:
                self._session.stop("cancelled", "the container was asked to stop")

    async def run(self) -> int:
        """Run the job.

        Returns:
            The exit code: 0 when the orchestrator has the job's outcome, 1 when it could not be told.
        """
        token = read_token(self._settings.token_file)
        async with _http(self._settings.socket) as http:
            policy = RetryPolicy(outage_s=self._settings.outage_s)
            client = WorkerClient(http, self._settings.job_id, token, clock=self._clock, policy=policy)
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
        job = await client.job()
        workspace = self._settings.workspace or Path(job.workspace.root)
        baseline = Baseline(workspace, self._settings.state_dir)
        session, redactor = None, Redactor(patterns=False)
        try:
            await client.status(StatusReport(state="starting", iteration=0))
            credentials = {one.env_var: one.value for one in await client.credentials()}
            redactor = Redactor(credentials, patterns=False)
            session = self._assemble(job, client, workspace, redactor)
            await self._fill(client, workspace, baseline, session)
            end = await self._converse(session, workspace, credentials)
        except (PortsideError, OSError) as error:
            if isinstance(error, PortsideError) and job_is_over(error):
                return 1
            end = LoopEnd("failed", f"the worker failed during start-up: {error}")
        return await self._hand_over(client, job, session, baseline, end)

    def _assemble(
        self, job: JobDescription, client: WorkerClient, workspace: Path, redactor: Redactor
    ) -> Session:
        settings = self._settings
        session = Session(
            job,
            client,
            SessionSettings(str(workspace), settings.attempt, settings.output_dir, settings.context_tokens),
            clock=self._clock,
            redactor=redactor,
            explainer=SubprocessExplainer(),
        )
        client.notice = session.events.warn
        self._session = session
        if self._stopped_at is not None:
            session.stop("cancelled", "the container was asked to stop")
        return session

    async def _fill(
        self, client: WorkerClient, workspace: Path, baseline: Baseline, session: Session
    ) -> None:
        """Unpack the starting workspace and record it."""
        state = anyio.Path(self._settings.state_dir)
        await state.mkdir(parents=True, exist_ok=True)
        await anyio.Path(workspace).mkdir(parents=True, exist_ok=True)
        archive = self._settings.state_dir / "workspace.tar"
        if await client.workspace(archive):
            unpacked = await anyio.to_thread.run_sync(unpack, archive, workspace)
            await anyio.Path(archive).unlink()
            if unpacked.skipped_links:
                left = ", ".join(unpacked.skipped_links[:20])
                session.events.warn(f"links out of the workspace were left out: {left}")
        await baseline.take()

    async def _converse(self, session: Session, workspace: Path, credentials: Mapping[str, str]) -> LoopEnd:
        local = self._make_tools(workspace, credentials, self._settings.output_dir)
        try:
            return await session.run(local.tools)
        finally:
            await local.close()

    async def _hand_over(
        self,
        client: WorkerClient,
        job: JobDescription,
        session: Session | None,
        baseline: Baseline,
        end: LoopEnd,
    ) -> int:
        """Upload the changes, then report; both go on until the time is up."""
        try:
            async with asyncio.timeout(self._finish_s(job)):
                patch, end = await self._changes(session, baseline, end)
                await client.upload_changes(patch.path, patch.digest)
                await self._report(client, session, end, patch.files)
        except (TimeoutError, PortsideError) as error:
            # Nobody is left to tell but the container's log; the patch stays in the state directory.
            _LOG.error("the outcome %s could not be reported: %s", end.outcome, error or "no time left")
            return 1
        return 0

    async def _changes(
        self, session: Session | None, baseline: Baseline, end: LoopEnd
    ) -> tuple[Patch, LoopEnd]:
        """The job's patch; when it can't be made, an empty one and a failed job that says so."""
        try:
            patch = await baseline.diff()
        except (WorkspaceError, OSError) as error:
            reason = f"{end.reason}; " if end.reason else ""
            failed = replace(
                end, outcome="failed", reason=f"{reason}the changes could not be recorded: {error}"
            )
            return await baseline.nothing(), failed
        if session is not None and patch.ignored:
            left = ", ".join(patch.ignored)
            session.events.log("info", f"new files that ignore rules keep out of the diff: {left}")
        if session is not None and patch.unreadable:
            session.events.warn(f"not in the diff: {patch.unreadable}")
        return patch, end

    async def _report(self, client: WorkerClient, session: Session | None, end: LoopEnd, files: int) -> None:
        reason = end.reason[:_MAX_REASON] if end.reason else None
        message = end.message[:_MAX_MESSAGE] if end.message else None
        if session is not None:
            session.events.emit(
                ResultData(
                    outcome=end.outcome,
                    reason=reason,
                    message=message,
                    iterations=end.iterations,
                    files_changed=files,
                )
            )
            await session.events.flush(_FLUSH_S)
        await client.report(
            CompletionReport(outcome=end.outcome, reason=reason, message=message, iterations=end.iterations)
        )

    def _finish_s(self, job: JobDescription) -> float:
        """How long the hand-over may take: the rest of the grace, or of the job's time."""
        if self._stopped_at is not None:
            return max(self._settings.grace_s - (self._clock.monotonic() - self._stopped_at) - 1.0, 1.0)
        left_s = (job.limits.deadline_at - self._clock.now()).total_seconds()
        return max(left_s, _LEAST_FINISH_S)


def _http(socket: Path) -> httpx.AsyncClient:
    transport = httpx.AsyncHTTPTransport(uds=str(socket))
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

"""What a job leaves: its changes, then its outcome."""

from __future__ import annotations

import logging
from dataclasses import replace

from tool_registry.errors import RemoteProblem
from worker.changes import Baseline, Patch
from worker.client import WorkerClient
from worker.ending import LoopEnd
from worker.errors import WorkspaceError
from worker.events import EventSink
from worker.protocol.events import ResultData
from worker.protocol.job import CompletionReport, StatusReport

_FLUSH_S = 5.0
_MAX_REASON = 4_000
_MAX_MESSAGE = 65_000
_LOG = logging.getLogger("portside.worker")


class HandOver:
    """Gives the orchestrator what a job came to.

    Args:
        client: to the orchestrator.
        baseline: what the workspace was.
        events: the job's timeline; None when the job ended before it had one.
    """

    def __init__(self, client: WorkerClient, baseline: Baseline, events: EventSink | None) -> None:
        self._client = client
        self._baseline = baseline
        self._events = events

    async def run(self, end: LoopEnd) -> None:
        """Upload the changes, then report.

        Raises:
            PortsideError: the orchestrator could not be told.
        """
        patch, end = await self._changes(end)
        await self._announce(end)
        await self._client.upload_changes(patch.path, patch.digest)
        await report(self._client, self._events, end, patch.files)

    async def _changes(self, end: LoopEnd) -> tuple[Patch, LoopEnd]:
        """The job's patch; when it can't be made, an empty one and a failed job that says so."""
        try:
            patch = await self._baseline.diff()
        except (WorkspaceError, OSError) as error:
            reason = f"{end.reason}; " if end.reason else ""
            reason += f"the changes could not be recorded: {error}"
            return await self._baseline.nothing(), replace(end, outcome="failed", reason=reason)
        if self._events is not None and patch.ignored:
            left = ", ".join(patch.ignored)
            self._events.log("info", f"new files that ignore rules keep out of the diff: {left}")
        if self._events is not None and patch.unreadable:
            self._events.warn(f"not in the diff: {patch.unreadable}")
        return patch, end

    async def _announce(self, end: LoopEnd) -> None:
        try:
            await self._client.status(StatusReport(state="finishing", iteration=end.iterations))
        except RemoteProblem as problem:
            # A note only: the upload and the report that follow say more.
            _LOG.warning("the status was not taken: %s", problem.message)


async def report(client: WorkerClient, events: EventSink | None, end: LoopEnd, files: int | None) -> None:
    """Say how a job ended: in its timeline, then to the orchestrator, both within their bounds.

    Args:
        client: to the orchestrator.
        events: the job's timeline, if it has one.
        end: how it ended.
        files: how many were changed; None where there are none to change.

    Raises:
        PortsideError: the orchestrator could not be told.
    """
    reason = end.reason[:_MAX_REASON] if end.reason else None
    message = end.message[:_MAX_MESSAGE] if end.message else None
    if events is not None:
        events.emit(
            ResultData(
                outcome=end.outcome,
                reason=reason,
                message=message,
                iterations=end.iterations,
                files_changed=files,
            )
        )
        await events.flush(_FLUSH_S)
    await client.report(
        CompletionReport(
            outcome=end.outcome,
            reason=reason,
            message=message,
            iterations=end.iterations,
            result=end.result,
        )
    )

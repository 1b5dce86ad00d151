"""A job's run from its first to its last message, whatever the transport.

The hosted worker and the orchestrator's in-process jobs both run this; what differs is the transport, the
local tools, and what happens to the workspace before and after.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tool_registry.clock import Clock
from tool_registry.errors import PortsideError
from tool_registry.explain import Explainer
from tool_registry.redaction import Redactor
from tool_registry.tool import Tool
from worker.caller import caller_of
from worker.calls import CallRunner
from worker.context import opening
from worker.ending import BoundedWork, LoopEnd, Stop
from worker.errors import job_is_over
from worker.events import EventSink
from worker.finish import FinishTool
from worker.history import History
from worker.inbox import Inbox
from worker.loop import AgentLoop, LoopParts
from worker.protocol.job import JobDescription, JobOutcome
from worker.surface import ToolSurface
from worker.transport import Transport
from worker.window import ContextWindow


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """What a run needs beside the job.

    Attributes:
        workspace: the root as the model is told.
        attempt: part of every idempotency key.
        output_dir: where long outputs are kept whole.
        context_tokens: the conversation's budget.
    """

    workspace: str
    attempt: int
    output_dir: Path
    context_tokens: int = 120_000


class Session:
    """One job's registry, loop and lines, put together.

    Attributes:
        events: the job's timeline; flush it after the last event.
    """

    def __init__(
        self,
        job: JobDescription,
        transport: Transport,
        settings: SessionSettings,
        *,
        clock: Clock,
        redactor: Redactor | None = None,
        explainer: Explainer | None = None,
    ) -> None:
        self._job = job
        self._transport = transport
        self._settings = settings
        self._clock = clock
        self._redactor = redactor or Redactor(patterns=False)
        self._work = BoundedWork(job, clock)
        self._loop: AgentLoop | None = None
        self._finish = FinishTool()
        self.events = EventSink(transport, clock)
        self._inbox = Inbox(
            transport,
            on_cancel=lambda text: self.stop("cancelled", text or "cancelled"),
            on_job_over=lambda error: self.stop("cancelled", error.message),
        )
        self._surface = ToolSurface.of_job(
            transport,
            attempt=settings.attempt,
            output_dir=settings.output_dir,
            clock=clock,
            redactor=self._redactor,
            explainer=explainer,
        )

    def stop(self, outcome: JobOutcome, reason: str) -> None:
        """End the run; the first reason counts. The running tool is stopped first."""
        self._work.stop(outcome, reason)

    async def run(self, local_tools: Iterable[Tool]) -> LoopEnd:
        """Run to the end.

        Returns:
            How it ended, also for a failure; what was said so far is in the timeline.
        """
        self._surface.add_local([*local_tools, self._finish])
        background = [asyncio.create_task(self.events.run()), asyncio.create_task(self._inbox.run())]
        try:
            return await self._until_end()
        finally:
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)
            await self._acknowledge()

    async def _until_end(self) -> LoopEnd:
        try:
            end = await self._work.run(self._converse())
        except PortsideError as error:
            return self._ended("cancelled" if job_is_over(error) else "failed", error.message)
        return self._ended(end.outcome, end.reason) if isinstance(end, Stop) else end

    async def _converse(self) -> LoopEnd:
        try:
            for line in (await self._surface.refresh()).warnings():
                self.events.warn(line)
        except PortsideError as error:
            if job_is_over(error):
                raise
            # A job that silently lost its tools is worse than one that did not start.
            return LoopEnd("failed", f"the tool catalogue could not be fetched: {error.message}")
        self._loop = self._assemble()
        return await self._loop.run()

    def _assemble(self) -> AgentLoop:
        job, transport = self._job, self._transport
        parts = LoopParts(
            surface=self._surface,
            runner=CallRunner(self._surface, self.events, self._redactor, caller_of(job)),
            finish=self._finish,
            history=History(opening(job, self._settings.workspace, self._surface.instructions)),
            window=ContextWindow(transport, self._settings.context_tokens),
            events=self.events,
            inbox=self._inbox,
            clock=self._clock,
        )
        return AgentLoop(job, transport, parts)

    def _ended(self, outcome: JobOutcome, reason: str) -> LoopEnd:
        loop = self._loop
        if loop is None:
            return LoopEnd(outcome, reason)
        return LoopEnd(outcome, reason, loop.last_text or None, loop.spent.iterations)

    async def _acknowledge(self) -> None:
        try:
            await self._inbox.acknowledge()
        except PortsideError as error:
            self.events.warn(f"deliveries could not be acknowledged: {error.message}")

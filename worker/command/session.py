"""A job whose agent is a command: its life from start to end, as `worker.session` is the loop's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import anyio

from tool_registry.clock import Clock
from tool_registry.errors import PortsideError
from tool_registry.explain import Explainer
from tool_registry.redaction import Redactor
from tool_registry.tool import Tool
from worker.bridge.calls import BridgeCalls, CallerOf
from worker.bridge.gate import BridgeGate, Session
from worker.call_events import CallEvents
from worker.caller import caller_of
from worker.command.announcement import Announcement
from worker.command.output import OutputEvents
from worker.command.run import CommandRun
from worker.ending import BoundedWork, LoopEnd, Stop
from worker.errors import job_is_over
from worker.events import EventSink
from worker.inbox import Inbox
from worker.protocol.job import JobDescription, JobOutcome, StatusReport
from worker.relay.server import HOST, Relay
from worker.relay.upstream import Upstream
from worker.surface import ToolSurface
from worker.transport import Transport

CATALOGUE_LOOK_S = 2.0
# What an image says to loaders and interpreters; the bridge's program is not of the image.
_FOR_COMMANDS = ("LD_", "PYTHON")


@dataclass(frozen=True, slots=True)
class CommandSettings:
    """What a command needs beside its job.

    Attributes:
        workspace: where it starts.
        environment: without the announcement; what every command of a job finds.
        attempt: part of every idempotency key.
        output_dir: where long outputs of tools are kept whole.
        bridge: where the bridge listens.
        announced_in: where the files that the command is told of are written.
        look_s: how often the catalogue is looked at for changes.
    """

    workspace: Path
    environment: Mapping[str, str]
    attempt: int
    output_dir: Path
    bridge: Path
    announced_in: Path
    look_s: float = CATALOGUE_LOOK_S


class CommandSession:
    """One command with its bridge and its relay, put together.

    Attributes:
        events: the job's timeline; flush it after the last event.
    """

    def __init__(
        self,
        job: JobDescription,
        transport: Transport,
        upstream: Upstream,
        settings: CommandSettings,
        *,
        clock: Clock,
        redactor: Redactor,
        explainer: Explainer | None = None,
    ) -> None:
        self._job = job
        self._transport = transport
        self._settings = settings
        self._redactor = redactor
        self._work = BoundedWork(job, clock)
        self._upstream = upstream
        self._relay = Relay(upstream)
        self.events = EventSink(transport, clock)
        self._inbox = Inbox(
            transport,
            on_cancel=lambda text: self.stop("cancelled", text or "cancelled"),
            on_job_over=self._over,
        )
        self._surface = ToolSurface.of_job(
            transport,
            attempt=settings.attempt,
            output_dir=settings.output_dir,
            clock=clock,
            redactor=redactor,
            explainer=explainer,
        )

    def stop(self, outcome: JobOutcome, reason: str) -> None:
        """End the command and all that it started; the first reason counts."""
        self._work.stop(outcome, reason)

    async def run(self, local_tools: Iterable[Tool]) -> LoopEnd:
        """Run to the end.

        Returns:
            How it ended, also for a failure.
        """
        self._surface.add_local(local_tools)
        background = [asyncio.create_task(one) for one in (self.events.run(), self._inbox.run())]
        try:
            end = await self._work.run(self._serve())
        except PortsideError as error:
            return self._ended("cancelled" if job_is_over(error) else "failed", error.message)
        except OSError as error:
            return self._ended("failed", f"the command could not be started: {error.strerror or error}")
        finally:
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)
        return self._ended(end.outcome, end.reason) if isinstance(end, Stop) else end

    async def _serve(self) -> LoopEnd:
        """Open relay and bridge, then run the command between them."""
        for line in (await self._surface.refresh()).warnings():
            self.events.warn(line)
        calls = self._calls()
        async with AsyncExitStack() as stack:
            await self._relay.open()
            stack.push_async_callback(self._relay.close)
            gate = BridgeGate(self._settings.bridge, lambda: self._bridge_session(calls))
            await gate.open()
            stack.push_async_callback(gate.close)
            watching = asyncio.create_task(self._watch_catalogue())
            stack.callback(watching.cancel)
            return await self._run_command()

    async def _bridge_session(self, calls: BridgeCalls) -> Session:
        # The MCP SDK takes a second to import, and many a command needs none of it.
        server = await anyio.to_thread.run_sync(import_module, "worker.bridge.server")
        return server.BridgeSession(self._surface, calls, self._refresh)

    def _calls(self) -> BridgeCalls:
        caller = CallerOf(caller_of(self._job), lambda: self._upstream.answered, self._over)
        return BridgeCalls(self._surface, CallEvents(self.events, self._redactor), caller)

    async def _run_command(self) -> LoopEnd:
        settings, command = self._settings, self._job.command
        assert command is not None
        said = Announcement(
            task=self._job.task,
            model=self._job.model,
            relay=f"http://{HOST}:{self._relay.port}",
            bridge=settings.bridge,
            directory=settings.announced_in,
            emptied=tuple(name for name in settings.environment if name.startswith(_FOR_COMMANDS)),
        )
        await anyio.to_thread.run_sync(said.write)
        await self._transport.status(StatusReport(state="running", iteration=0))
        run = CommandRun(
            OutputEvents("stdout", self.events, self._redactor),
            OutputEvents("stderr", self.events, self._redactor),
        )
        # What the job was granted comes last: who grants a variable means it.
        environment = {**said.environment(), **settings.environment}
        ended = await run.run(command, directory=settings.workspace, environment=environment)
        return LoopEnd(
            "failed" if ended.failure else "completed",
            reason=ended.failure,
            message=ended.stdout_end or (ended.stderr_end if ended.failure else "") or None,
            iterations=self._upstream.answered,
            result={"exit_code": ended.exit_code},
        )

    async def _refresh(self) -> None:
        """Bring the surface up to date; an outage leaves it as it is."""
        try:
            changed = await self._surface.refresh()
        except PortsideError as error:
            if job_is_over(error):
                self._over(error)
            return
        for line in changed.warnings():
            self.events.warn(line)

    async def _watch_catalogue(self) -> None:
        while True:
            await asyncio.sleep(self._settings.look_s)
            await self._refresh()

    def _over(self, error: PortsideError) -> None:
        self.stop("cancelled", error.message)

    def _ended(self, outcome: JobOutcome, reason: str) -> LoopEnd:
        return LoopEnd(outcome, reason, iterations=self._upstream.answered)

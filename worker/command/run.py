"""The command's processes: started, watched, ended as a tree."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import anyio

from worker.command.output import OutputEvents
from worker.tools.process import ProcessTree

_DRAIN_S = 2.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended; `exit_code` is negative for the number of the signal that ended it."""

    exit_code: int
    stdout_end: str
    stderr_end: str

    @property
    def failure(self) -> str | None:
        """Why it counts as failed; None when it does not."""
        if self.exit_code == 0:
            return None
        if self.exit_code > 0:
            return f"the command exited with code {self.exit_code}"
        with suppress(ValueError):
            return f"the command was ended by {signal.Signals(-self.exit_code).name}"
        return f"the command was ended by signal {-self.exit_code}"


class CommandRun:
    """Runs shell text once, with empty input, in a session of its own."""

    def __init__(self, out: OutputEvents, err: OutputEvents) -> None:
        self._out = out
        self._err = err

    async def run(self, text: str, *, directory: Path, environment: Mapping[str, str]) -> Ended:
        """Run to the end of the command; what it left running ends then. Cancelling ends the whole tree.

        Raises:
            OSError: it could not be started.
        """
        tree = await self._started(text, directory, environment)
        try:
            code = await tree.exit_code()
            with anyio.move_on_after(_DRAIN_S):  # a process that lives on may hold the pipes
                await self._out.ended.wait()
                await self._err.ended.wait()
        finally:
            with anyio.CancelScope(shield=True):
                await tree.end()
            out, err = self._out.finish(), self._err.finish()
            self._out.close()
            self._err.close()
        return Ended(code, out, err)

    async def _started(self, text: str, directory: Path, environment: Mapping[str, str]) -> ProcessTree:
        """Start it; a command that was called off while it started is ended again."""
        starting = asyncio.create_task(self._start(text, directory, environment))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True), suppress(OSError):
                await (await starting).end()
            self._out.close()
            self._err.close()
            raise

    async def _start(self, text: str, directory: Path, environment: Mapping[str, str]) -> ProcessTree:
        shell = shutil.which("bash") or "/bin/sh"
        with ExitStack() as ends:
            pipes: list[int] = []
            for output in (self._out, self._err):
                pipes.append(await output.open_pipe())
                ends.callback(os.close, pipes[-1])
            try:
                return await ProcessTree.start(
                    [shell, "-c", text],
                    python=(sys.executable,),
                    directory=directory,
                    environment=environment,
                    out=pipes[0],
                    err=pipes[1],
                )
            except OSError:
                self._out.close()
                self._err.close()
                raise

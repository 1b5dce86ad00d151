"""Commands that go on after their call."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from worker.tools.command_output import CommandOutput
from worker.tools.process import ProcessTree

_LAST_WAIT_S = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class RunningCommand:
    """A command's processes and the outputs that are read from them."""

    tree: ProcessTree
    outputs: tuple[CommandOutput, ...]

    async def end(self) -> None:
        """End every process and stop reading."""
        await self.tree.end()
        for output in self.outputs:
            output.close()


class BackgroundJobs:
    """All commands with a process that outlived its call; ended together when the job ends."""

    def __init__(self) -> None:
        self._running: dict[RunningCommand, asyncio.Task[None]] = {}

    def keep(self, command: RunningCommand) -> None:
        """Look after a command until its last process has ended."""
        self._running[command] = asyncio.create_task(self._watch(command))

    async def close(self) -> None:
        """End them all."""
        running = list(self._running)
        await asyncio.gather(*(command.end() for command in running))
        watching = list(self._running.values())
        if watching:
            await asyncio.wait(watching, timeout=_LAST_WAIT_S)

    async def _watch(self, command: RunningCommand) -> None:
        await command.tree.gone()
        for output in command.outputs:
            output.close()
        del self._running[command]

"""A command and everything it started."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from worker.tools import supervisor
from worker.tools.orphans import end_orphans

_LAST_WORDS_S = 2.0


class ProcessTree:
    """A running command with its descendants, watched by a supervisor process of its own.

    Attributes:
        pid: the shell's process id; it leads a session and process group of that number.
    """

    def __init__(self, process: Process) -> None:
        self._process = process
        self._exit_code: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._started = asyncio.Event()
        self.pid = 0
        self._following = asyncio.create_task(self._follow())

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        python: Sequence[str],
        directory: Path,
        environment: Mapping[str, str],
        out: int,
        err: int,
    ) -> Self:
        """Start a command in a session of its own, with empty input.

        Args:
            command: absolute path of the program, and its arguments.
            python: how a Python interpreter is started; it runs the supervisor.
            directory: where the command starts.
            environment: its whole environment.
            out: descriptor for its standard output.
            err: descriptor for its standard error.

        Raises:
            OSError: it could not be started.
        """
        process = await asyncio.create_subprocess_exec(
            *python, "-I", "-S", str(Path(supervisor.__file__)), str(out), str(err), *command,
            stdin=PIPE, stdout=PIPE, stderr=err, pass_fds=(out, err), cwd=directory, env={},
            process_group=0,
        )  # fmt: skip
        tree = cls(process)
        # Not as the supervisor's own: what it says to loaders and interpreters is for the command.
        await tree._send(supervisor.packed(environment))
        await tree._started.wait()
        if not tree.pid:
            raise OSError(errno.EIO, "its supervisor did not start")
        return tree

    async def _send(self, data: bytes) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        with suppress(ConnectionError):  # it did not start, as will be seen
            stdin.write(data)
            await stdin.drain()

    async def exit_code(self) -> int:
        """Wait for the shell itself; negative is the number of the signal that ended it."""
        return await asyncio.shield(self._exit_code)

    async def gone(self) -> None:
        """Wait until the last descendant has ended."""
        await asyncio.shield(self._following)

    def survivors(self) -> list[int]:
        """The processes that still run, other than the shell."""
        return [pid for pid in supervisor.descendants(self._process.pid) if pid != self.pid]

    async def end(self) -> None:
        """End the whole tree: SIGTERM, 2 s later SIGKILL; return when it is gone."""
        stdin = self._process.stdin
        if stdin is not None:
            stdin.close()
        self._signal_supervisor(signal.SIGCONT)  # the command may have stopped it
        try:
            async with asyncio.timeout(supervisor.GRACE_S + _LAST_WORDS_S):
                await self.gone()
        except TimeoutError:
            await self._end_without_supervisor()

    async def _end_without_supervisor(self) -> None:
        """It does not do its work: end what is below it, then itself."""
        await asyncio.to_thread(supervisor.kill_tree, self._process.pid)
        self._signal_supervisor(signal.SIGKILL)
        # A process in an uninterruptible wait of the kernel outlives even SIGKILL; nobody waits for that.
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_S):
                await self.gone()

    def _signal_supervisor(self, number: signal.Signals) -> None:
        """Not by asyncio's process: that would collect an exit code which its own watcher waits for."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, number)

    async def _follow(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        async for line in stdout:
            word, _, number = line.decode().partition(" ")
            if word == "started":
                self.pid = int(number)
                self._started.set()
            elif not self._exit_code.done():
                self._exit_code.set_result(int(number))
        if await self._process.wait() != 0:
            await self._supervisor_lost()
        if not self._exit_code.done():
            self._exit_code.set_result(-signal.SIGKILL)
        self._started.set()

    async def _supervisor_lost(self) -> None:
        """Somebody killed the supervisor: what it looked after is the worker's own now, and ends."""
        if self.pid:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        await asyncio.to_thread(end_orphans)

"""A server as a child process: scrubbed environment, guarded life, tolerant reader.

The SDK's own stdio client inherits more of the environment, stops at the first byte that is not UTF-8 and
keeps no stderr; so this one replaces it below the SDK's dispatcher.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import anyio.abc
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from tool_registry.mcp.frames import LineSplitter, parse_message
from tool_registry.mcp.log import ServerLog
from tool_registry.mcp.transport import ServerUnreachable, Wire

INHERITED = ("PATH", "HOME", "LANG", "TMPDIR")
GUARD = Path(__file__).with_name("guard.py")
EXIT_GRACE_S = 2.0
STOP_GRACE_S = 4.0
LAST_WORDS_S = 1.0
_QUEUED_MESSAGES = 256
_CHUNK_BYTES = 256 * 1024

_Read = MemoryObjectSendStream[SessionMessage | Exception]
_Write = MemoryObjectReceiveStream[SessionMessage]


class StdioTransport:
    """Starts a command and speaks newline-delimited JSON-RPC over its stdin and stdout.

    Args:
        command: a program, looked up in the child's own PATH.
        env: set beside PATH, HOME, LANG and TMPDIR, which come from `inherited`; nothing else is passed on.
        cwd: where it runs; the orchestrator's directory when None.
        log: takes stderr and stdout noise.
        inherited: the orchestrator's environment.
    """

    kind = "stdio"
    older = None

    def __init__(
        self,
        command: str,
        args: tuple[str, ...],
        *,
        env: Mapping[str, str],
        cwd: str | None,
        log: ServerLog,
        inherited: Mapping[str, str],
    ) -> None:
        self._command = command
        self._args = args
        self._env = {name: inherited[name] for name in INHERITED if name in inherited} | dict(env)
        self._cwd = cwd
        self._log = log

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Wire]:
        """Start the process; leaving ends it and all that it started."""
        program = self._program()
        control, ours = os.pipe()
        try:
            child = await self._spawn(program, control)
        except BaseException:
            os.close(ours)
            raise
        finally:
            os.close(control)
        life = _Child(child, ours, self._log)
        async with anyio.create_task_group() as tasks:
            to_session, read = anyio.create_memory_object_stream[SessionMessage | Exception](_QUEUED_MESSAGES)
            write, from_session = anyio.create_memory_object_stream[SessionMessage](_QUEUED_MESSAGES)
            tasks.start_soon(life.read_stdout, to_session)
            tasks.start_soon(life.write_stdin, from_session, to_session)
            tasks.start_soon(life.read_stderr)
            try:
                yield Wire((read, write), life.last_words)
            finally:
                with anyio.CancelScope(shield=True):
                    read.close()
                    write.close()
                    await life.end()
                tasks.cancel_scope.cancel()

    def _program(self) -> str:
        if self._cwd is not None and not Path(self._cwd).is_dir():
            raise ServerUnreachable(
                f"its `cwd` {self._cwd!r} is not a directory: create it or correct the path"
            )
        relative = Path(self._cwd or ".") / self._command if "/" in self._command else self._command
        found = shutil.which(relative, path=self._env.get("PATH", os.defpath))
        if found is None:
            raise ServerUnreachable(
                f"its `command` {self._command!r} was not found or is not executable:"
                " install it, or write its full path"
            )
        return str(Path(found).absolute())

    async def _spawn(self, program: str, control: int) -> anyio.abc.Process:
        command = [sys.executable, "-I", "-S", str(GUARD), str(control), program, *self._args]
        process: anyio.abc.Process | None = None
        try:
            # A start that is called off halfway would leave a process that nobody waits for.
            with anyio.CancelScope(shield=True):
                process = await anyio.open_process(
                    command, env=self._env, cwd=self._cwd, start_new_session=True, pass_fds=(control,)
                )
        except (OSError, ValueError) as error:
            raise ServerUnreachable(f"it can't be started: {error}") from None
        assert process is not None  # nothing ends a shielded scope early
        return process


class _Child:
    """The guarded process and the three tasks that serve its pipes."""

    def __init__(self, process: anyio.abc.Process, control: int, log: ServerLog) -> None:
        self._process = process
        self._control: int | None = control
        self._log = log
        self._ending = False
        self._stdout_done = False
        self._stderr_done = anyio.Event()

    async def read_stdout(self, to_session: _Read) -> None:
        """Pass on messages, skip noise; the session sees the end of the stream when stdout ends."""
        assert self._process.stdout is not None
        splitter = LineSplitter()
        async with to_session:
            with suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
                while True:
                    for line in splitter.feed(await self._process.stdout.receive(_CHUNK_BYTES)):
                        await self._deliver(line, to_session)
        self._stdout_done = True

    async def _deliver(self, line: bytes, to_session: _Read) -> None:
        message = parse_message(line)
        if message is None:
            self._log.add_noise(line)
            return
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            # Where the session is gone the rest is still read: a server that can't write can't exit.
            await to_session.send(SessionMessage(message))

    async def write_stdin(self, from_session: _Write, to_session: _Read) -> None:
        """Send messages; a server that closed its stdin is a server that is gone."""
        assert self._process.stdin is not None
        try:
            async with from_session:
                async for message in from_session:
                    text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await self._process.stdin.send(text.encode() + b"\n")
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            await to_session.aclose()

    async def read_stderr(self) -> None:
        """Keep the last lines."""
        assert self._process.stderr is not None
        splitter = LineSplitter(64 * 1024)
        try:
            with suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
                while True:
                    for line in splitter.feed(await self._process.stderr.receive(_CHUNK_BYTES)):
                        self._log.add(line.decode("utf-8", "replace"))
        finally:
            self._stderr_done.set()

    async def last_words(self) -> str:
        """How it ended, and what it said last."""
        with anyio.move_on_after(LAST_WORDS_S):
            await self._process.wait()
            await self._stderr_done.wait()
        how = _ending(self._process.returncode) if not self._ending else ""
        said = self._log.tail()
        return "; ".join(part for part in (how, f"its last stderr lines: {said}" if said else "") if part)

    async def end(self) -> None:
        """Close stdin and give it time; then let the guard end everything; then kill the guard."""
        assert self._process.stdin is not None
        if self._stdout_done:
            await self._exited_within(LAST_WORDS_S)
        self._ending = self._process.returncode is None
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            await self._process.stdin.aclose()
        await self._exited_within(EXIT_GRACE_S)
        self._let_go()
        if not await self._exited_within(STOP_GRACE_S):
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.aclose()

    async def _exited_within(self, seconds: float) -> bool:
        with anyio.move_on_after(seconds):
            await self._process.wait()
        return self._process.returncode is not None

    def _let_go(self) -> None:
        if self._control is not None:
            os.close(self._control)
            self._control = None


def _ending(returncode: int | None) -> str:
    if returncode is None:
        return "it closed its output and is still running"
    if returncode >= 0:
        return f"it exited with code {returncode}"
    try:
        return f"it was ended by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"it was ended by signal {-returncode}"

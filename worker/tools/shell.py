"""The `shell` tool."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio

from tool_registry.clock import Clock
from tool_registry.context import ToolContext
from tool_registry.definition import ToolDefinition
from tool_registry.output import ToolOutput, Truncation
from worker.tools.background_jobs import BackgroundJobs, RunningCommand
from worker.tools.command_output import CommandOutput
from worker.tools.local_traits import local_traits, path_property
from worker.tools.process import ProcessTree
from worker.tools.refusal import Refused
from worker.tools.workspace_paths import Workspace, existing

DEFAULT_TIMEOUT_S = 120
MAX_TIMEOUT_S = 3600
_MARGIN_S = 60.0
_DRAIN_S = 0.5
_FIRST_LOOK_S = 0.3
_MAX_ARGUMENT_BYTES = 100_000
_TIMED_OUT = 124


def _definition(shell: str) -> ToolDefinition:
    return ToolDefinition.of(
        "shell",
        f"Run a command with {shell}, in the workspace. Every call is a new shell: cd and export do not "
        "carry over, so use workdir and join steps with &&. There is no terminal and no input. Long output "
        "keeps its beginning and end; the rest is in a file that the result names. Processes left running "
        "are ended with the call; start a server with background: true.",
        {
            "type": "object",
            "properties": {
                "command": {
                    "type": "string",
                    "minLength": 1,
                    "description": "Shell text; may have many lines.",
                },
                "workdir": path_property("Where to start, relative to the workspace.", default="."),
                "timeout_s": {
                    "type": "number",
                    "exclusiveMinimum": 0,
                    "maximum": MAX_TIMEOUT_S,
                    "default": DEFAULT_TIMEOUT_S,
                    "description": "Seconds until the command and all it started are killed. "
                    "Has no effect in the background.",
                },
                "background": {
                    "type": "boolean",
                    "default": False,
                    "description": "Return at once with pid and log_path; the command runs on.",
                },
            },
            "required": ["command"],
            "additionalProperties": False,
        },
    )


@dataclass(frozen=True, slots=True)
class Launch:
    """How commands are started.

    Attributes:
        environment: the whole environment of every command.
        python: how a Python interpreter is started.
        output_dir: where long outputs and logs lie.
        refusals: why commands were refused connections, since it was asked last.
    """

    environment: Mapping[str, str]
    python: Sequence[str]
    output_dir: Path
    refusals: Callable[[], list[str]] = list[str]
    shell: str = field(default_factory=lambda: shutil.which("bash") or "/bin/sh")


class Shell:
    """Runs commands, bounded in time and output, and leaves no process unknown."""

    traits = local_traits("shell", timeout_s=MAX_TIMEOUT_S + _MARGIN_S, destructive=True)

    def __init__(self, workspace: Workspace, launch: Launch, jobs: BackgroundJobs, clock: Clock) -> None:
        self._workspace = workspace
        self._launch = launch
        self._jobs = jobs
        self._clock = clock
        self.definition = _definition(Path(launch.shell).name)

    async def execute(self, params: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Run one command.

        The answer is `{exit_code, signal?, stdout, stderr, timed_out, duration_ms, truncated}`, with
        `stdout_path`, `stderr_path`, `network` and `ended` where they apply; in the background
        `{pid, log_path}`. `network` says why hosts were refused, which few programs pass on. `ended` are
        the processes that the command left behind: none outlives its call.
        """
        try:
            directory = self._directory(params.get("workdir", "."))
            with ExitStack() as after:
                command = self._command(params["command"], after)
                if params.get("background", False):
                    after.pop_all()
                    return await self._run_in_background(command, directory)
                timeout_s = self._timeout_s(params.get("timeout_s", DEFAULT_TIMEOUT_S), context)
                return await self._run(command, directory, timeout_s)
        except Refused as refused:
            return refused.output()
        except OSError as error:
            return ToolOutput.refusal("not_started", f"The command could not be started: {error.strerror}.")

    def _directory(self, text: str) -> Path:
        path = self._workspace.resolve(text)
        if existing(path) is None or not path.real.is_dir():
            raise Refused("not_a_directory", f"workdir {path.shown} is not an existing directory.")
        return path.real

    def _command(self, text: str, after: ExitStack) -> list[str]:
        try:
            data = text.encode()
        except UnicodeEncodeError as error:
            raise Refused("bad_command", "The command holds broken Unicode (a lone surrogate).") from error
        if b"\0" in data:
            raise Refused("bad_command", "The command holds a NUL character.")
        if len(data) <= _MAX_ARGUMENT_BYTES:
            return [self._launch.shell, "-c", text]
        # Linux takes at most 128 KiB in one argument.
        self._launch.output_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, script = tempfile.mkstemp(prefix="command-", suffix=".sh", dir=self._launch.output_dir)
        after.callback(os.unlink, script)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
        return [self._launch.shell, script]

    def _timeout_s(self, asked_s: float, context: ToolContext) -> float:
        if context.deadline is None:
            return asked_s
        left_s = context.deadline - self._clock.monotonic() - 3.0
        return max(0.1, min(asked_s, left_s))

    async def _start(
        self, command: list[str], directory: Path, outputs: tuple[CommandOutput, ...]
    ) -> RunningCommand:
        """Start a command; one that was called off while it started is ended again."""
        starting = asyncio.create_task(self._start_uncancelled(command, directory, outputs))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True), suppress(Refused):
                await (await starting).end()
            raise

    async def _start_uncancelled(
        self, command: list[str], directory: Path, outputs: tuple[CommandOutput, ...]
    ) -> RunningCommand:
        with ExitStack() as ends:
            pipes: list[int] = []
            for output in outputs:
                pipes.append(await output.open_pipe())
                ends.callback(os.close, pipes[-1])
            try:
                tree = await ProcessTree.start(
                    command,
                    python=self._launch.python,
                    directory=directory,
                    environment=self._launch.environment,
                    out=pipes[0],
                    err=pipes[-1],
                )
            except OSError:
                for output in outputs:
                    output.close()
                raise
        return RunningCommand(tree, outputs)

    async def _run(self, command: list[str], directory: Path, timeout_s: float) -> ToolOutput:
        began = self._clock.monotonic()
        out = CommandOutput(self._launch.output_dir, "stdout")
        err = CommandOutput(self._launch.output_dir, "stderr")
        running = await self._start(command, directory, (out, err))
        try:
            code, timed_out = await self._ended(running, timeout_s)
            await self._drain(running)
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True):
                await running.end()
            raise
        survivors = running.tree.survivors()
        with anyio.CancelScope(shield=True):
            await running.end()
        duration_ms = round((self._clock.monotonic() - began) * 1000)
        answer = _answer(running, code, timed_out=timed_out, duration_ms=duration_ms, survivors=survivors)
        refusals = self._launch.refusals()
        return replace(answer, result={**answer.result, "network": refusals}) if refusals else answer

    async def _ended(self, running: RunningCommand, timeout_s: float) -> tuple[int, bool]:
        try:
            async with asyncio.timeout(timeout_s):
                return await running.tree.exit_code(), False
        except TimeoutError:
            await running.tree.end()
            return _TIMED_OUT, True

    async def _drain(self, running: RunningCommand) -> None:
        """Take what is still in the pipes; processes that live on are not waited for."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_S):
                for output in running.outputs:
                    await output.ended.wait()
                await running.tree.gone()

    async def _run_in_background(self, command: list[str], directory: Path) -> ToolOutput:
        log = CommandOutput(self._launch.output_dir, "background", save_from_start=True)
        running = await self._start(command, directory, (log,))
        self._jobs.keep(running)
        pid = running.tree.pid
        result: dict[str, Any] = {"pid": pid, "log_path": log.saved_path}
        try:
            async with asyncio.timeout(_FIRST_LOOK_S):
                code = await running.tree.exit_code()
        except TimeoutError:
            result["note"] = f"Runs until the job ends. Stop it with: kill -- -{pid}"
            return ToolOutput(result)
        return ToolOutput(
            {**result, **_exit_status(code), "note": "It has ended already."}, is_error=code != 0
        )


def _exit_status(code: int) -> dict[str, Any]:
    if code >= 0:
        return {"exit_code": code}
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"SIG{-code}"  # real-time signals have no names of their own
    return {"exit_code": 128 - code, "signal": name}


def _answer(
    running: RunningCommand, code: int, *, timed_out: bool, duration_ms: int, survivors: list[int]
) -> ToolOutput:
    result: dict[str, Any] = {**_exit_status(code)}
    original = shown_bytes = 0
    paths: dict[str, str] = {}
    for name, output in zip(("stdout", "stderr"), running.outputs, strict=True):
        shown = output.freeze()
        where = output.saved_path
        result[name] = shown.text(where)
        original += shown.total_bytes
        shown_bytes += shown.shown_bytes
        if where:
            paths[f"{name}_path"] = where
    result |= {
        "timed_out": timed_out,
        "duration_ms": duration_ms,
        "truncated": original > shown_bytes,
        **paths,
    }
    if survivors:
        result["ended"] = survivors
        result["note"] = (
            "These processes were left running and were ended with the call. "
            "Start what should stay with background: true."
        )
    truncation = (
        Truncation(original, shown_bytes, next(iter(paths.values()), None))
        if original > shown_bytes
        else None
    )
    return ToolOutput(result, is_error=code != 0, truncated=truncation)

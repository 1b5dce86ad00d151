"""`portside`: the commands, and how each of them ends."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from orchestrator.cli import run as runs
from orchestrator.cli.failures import CommandFailed, UsageMistake
from orchestrator.cli.output import Output
from orchestrator.cli.session import orchestrator_for
from orchestrator.domain.jobs import JobMode
from orchestrator.domain.model_choice import SCRIPTED, NoModelChosen, resolve_model
from orchestrator.settings import Settings

app = typer.Typer(
    name="portside",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON for programs.")]


def main() -> None:
    """Run the command line; one line says what went wrong, and the exit code which kind."""
    debug = "--debug" in sys.argv
    arguments = [one for one in sys.argv[1:] if one != "--debug"]
    try:
        app(args=arguments, standalone_mode=True)
    except CommandFailed as error:
        if debug:
            raise
        sys.stderr.write(f"portside: {error.message}\n")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)


def settings_from_environment() -> Settings:
    """The settings.

    Raises:
        UsageMistake: a variable can't be used; the message names it.
    """
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = "PORTSIDE_" + "_".join(str(part) for part in first["loc"]).upper()
        raise UsageMistake(f"{name}: {first['msg']}") from None


def finish(work: Coroutine[Any, Any, int | None]) -> None:
    """Run a command's work; its exit code is the process's."""
    code = asyncio.run(work)
    if code:
        raise typer.Exit(code)


@app.callback()
def portside() -> None:
    """Coding agents in sealed containers; tools, secrets and models stay portside."""


@app.command()
def run(
    task: Annotated[str, typer.Argument(help="What the agent should do.")],
    workspace: Annotated[Path | None, typer.Option(help="Directory to work on a copy of.")] = None,
    agent: Annotated[str, typer.Option(help="Agent to run as.")] = "",
    model: Annotated[str, typer.Option(help="openai:M, anthropic:M or scripted:PATH.")] = "",
    mode: Annotated[JobMode, typer.Option(help="hosted runs in a container.")] = JobMode.HOSTED,
    tool_grant: Annotated[list[str] | None, typer.Option(help="Approval-gated tool to allow.")] = None,
    timeout: Annotated[float, typer.Option(help="Seconds.")] = 3600.0,
    memory: Annotated[str, typer.Option(help="Such as 2g; the default is 2 GiB.")] = "",
    cpus: Annotated[float | None, typer.Option(help="Such as 1.5.")] = None,
    image: Annotated[str, typer.Option(help="Image to run instead of the worker image.")] = "",
    network: Annotated[str, typer.Option(help="Agent network to join.")] = "",
    max_iterations: Annotated[int, typer.Option(help="Model requests at most.")] = 200,
    include_git: Annotated[bool, typer.Option("--include-git", help="Send .git along.")] = False,
    apply: Annotated[bool, typer.Option("--apply", help="Apply the diff when the job completed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a coding job in a sandbox: live timeline, then the diff."""
    settings = settings_from_environment()
    output = Output(as_json)
    body: dict[str, Any] = {
        "task": task,
        "agent": agent,
        "network": network,
        "mode": mode,
        "model": chosen_model(model, settings, output),
        "image": image,
        "grants": tool_grant or [],
        "timeout_s": timeout,
        "max_iterations": max_iterations,
        "memory_bytes": parse_size(memory) if memory else None,
        "cpus": cpus,
    }
    request = runs.RunRequest(body, workspace.absolute() if workspace else None, include_git, apply)
    finish(_run(settings, request, output))


async def _run(settings: Settings, request: runs.RunRequest, output: Output) -> int:
    hosted = request.body["mode"] == JobMode.HOSTED
    async with orchestrator_for(settings, output.say, needs_engine=hosted) as client:
        job = await runs.launch(client, request)
        events = await runs.watch(client, job["id"], output)
        return await runs.conclude(client, job["id"], events, request, output)


def chosen_model(asked: str, settings: Settings, output: Output) -> str:
    """The model to use, as `prefix:name`; a script's path made absolute.

    Raises:
        UsageMistake: nothing or too much names one.
    """
    try:
        choice = resolve_model(asked or None, os.environ)
    except (NoModelChosen, ValueError) as error:
        raise UsageMistake(str(error)) from None
    output.say(f"model {choice.model} ({choice.reason})")
    prefix, _, name = choice.model.partition(":")
    return f"{prefix}:{Path(name).expanduser().absolute()}" if prefix == SCRIPTED else choice.model


def parse_size(text: str) -> int:
    """Bytes of a size such as `512m` or `2g`.

    Raises:
        UsageMistake: it is none.
    """
    units = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30}
    lowered = text.strip().lower().removesuffix("ib").removesuffix("b") or "-"
    number, unit = (lowered[:-1], lowered[-1]) if lowered[-1].isalpha() else (lowered, "")
    try:
        return int(float(number) * units[unit])
    except (ValueError, KeyError):
        raise UsageMistake(f"{text!r} is not a size; write it like 512m or 2g") from None


if __name__ == "__main__":
    main()

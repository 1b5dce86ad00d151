"""`portside run`: its options, and the choice of where the job runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from orchestrator.cli import run as runs
from orchestrator.cli.client import OperatorClient
from orchestrator.cli.daemon import start_daemon
from orchestrator.cli.failures import UsageMistake
from orchestrator.cli.invocation import AsJson, finish, settings_from_environment
from orchestrator.cli.numbers import over_zero
from orchestrator.cli.output import Output
from orchestrator.cli.secrets_commands import secret_grants
from orchestrator.cli.session import Needs, orchestrator_for, running
from orchestrator.cli.watching import see_to_end
from orchestrator.domain.egress.patterns import PatternRefused, parse_patterns
from orchestrator.domain.jobs import LEAST_MEMORY_BYTES, JobMode
from orchestrator.domain.model_choice import SCRIPTED, NoModelChosen, resolve_model
from orchestrator.settings import Settings


def run(
    task: Annotated[str, typer.Argument(help="What the agent should do; may be left out with --exec.")] = "",
    workspace: Annotated[Path | None, typer.Option(help="Directory to work on a copy of.")] = None,
    title: Annotated[str, typer.Option(help="What lists call the job; the task's first line else.")] = "",
    agent: Annotated[str, typer.Option(help="Agent to run as.")] = "",
    model: Annotated[str, typer.Option(help="openai:M, anthropic:M or scripted:PATH.")] = "",
    command: Annotated[
        str, typer.Option("--exec", metavar="COMMAND", help="Runs as the agent, in the container's shell.")
    ] = "",
    mode: Annotated[JobMode, typer.Option(help="hosted runs in a container.")] = JobMode.HOSTED,
    tool_grant: Annotated[list[str] | None, typer.Option(help="Approval-gated tool to allow.")] = None,
    coerce: Annotated[
        Literal["never", "safe"],
        typer.Option(help="safe reads text where none may stand as the value it spells."),
    ] = "never",
    secret: Annotated[
        list[str] | None, typer.Option(metavar="NAME=ENV_VAR", help="Secret for the agent's commands.")
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="Host for its commands: example.org, *.example.org, host:8443."),
    ] = None,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", parser=over_zero, help="When the job is ended; at most a day.")
    ] = 3600.0,
    memory: Annotated[
        str, typer.Option(metavar="SIZE", help="Such as 2g, which is the default; 64m at least.")
    ] = "",
    cpus: Annotated[
        float | None,
        typer.Option(metavar="NUMBER", parser=over_zero, help="Such as 1.5; the default is 2, or all."),
    ] = None,
    image: Annotated[str, typer.Option(help="Image to run instead of the worker image.")] = "",
    network: Annotated[str, typer.Option(help="Agent network to join.")] = "",
    max_iterations: Annotated[
        int, typer.Option(metavar="NUMBER", min=1, max=10_000, help="Model requests at most.")
    ] = 200,
    max_tokens: Annotated[
        int | None, typer.Option(metavar="NUMBER", min=1, help="Of all model requests, in and out.")
    ] = None,
    include_git: Annotated[bool, typer.Option("--include-git", help="Send .git along.")] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Start it and come back at once.")] = False,
    apply: Annotated[bool, typer.Option("--apply", help="Apply the diff when the job completed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a coding job in a sandbox: live timeline, then the diff."""
    settings = settings_from_environment()
    output = Output(as_json)
    if detach and apply:
        raise UsageMistake("--apply needs the job's end; with --detach use portside jobs apply later")
    if apply and workspace is None:
        raise UsageMistake("--apply needs a --workspace to apply the changes to; the present one is .")
    body: dict[str, Any] = {
        "task": _task(task, command),
        "command": command or None,
        "title": title,
        "agent": agent,
        "network": network,
        "mode": mode,
        **_models(model, output, agent=agent, command=command),
        "image": image,
        "grants": tool_grant or [],
        "coerce": coerce,
        "secrets": secret_grants(secret or []),
        "allow_hosts": allowed_hosts(allow_host or [], mode),
        "timeout_s": timeout,
        "max_iterations": max_iterations,
        "max_tokens": max_tokens,
        "memory_bytes": _memory_bytes(memory),
        "cpus": cpus,
    }
    request = runs.RunRequest(body, existing(workspace), include_git, apply)
    finish(_detached(settings, request, output) if detach else _watched(settings, request, output))


def _task(task: str, command: str) -> str:
    if not (task.strip() or command.strip()):
        raise UsageMistake("say what the agent should do, or name a command with --exec")
    return task if task.strip() else command


def _models(model: str, output: Output, *, agent: str, command: str) -> dict[str, str]:
    """The model that was asked for, or what counts where the agent names none."""
    if model:
        return {"model": chosen_model(model, output), "default_model": ""}
    usual = chosen_model("", output, agent=agent, needed=not (command or agent))
    return {"model": "", "default_model": usual}


async def _watched(settings: Settings, request: runs.RunRequest, output: Output) -> int:
    async def begin(client: OperatorClient) -> str:
        return (await runs.launch(client, request))["id"]

    async def conclude(client: OperatorClient, job_id: str, events: list[dict[str, Any]]) -> int:
        return await runs.conclude(client, job_id, events, request, output)

    return await see_to_end(settings, output, _needs(request), begin=begin, conclude=conclude)


async def _detached(settings: Settings, request: runs.RunRequest, output: Output) -> int:
    stop = "" if await running(settings) else await start_daemon(settings, output.say, _needs(request))
    async with orchestrator_for(settings, output.say, _needs(request)) as client:
        if client.embedded:
            raise UsageMistake("the orchestrator ended before it took the job; try again")
        job = await runs.launch(client, request)
    if output.as_json:
        output.json({"job": job, "stop": stop or None})
        return 0
    output.console.print(
        f"job {job['id']} runs; watch it with: portside jobs attach {job['id']}", markup=False
    )
    if stop:
        output.console.print(f"its orchestrator stays; stop it with: {stop}", markup=False)
    return 0


def _needs(request: runs.RunRequest) -> Needs:
    body = request.body
    return Needs(
        engine=body["mode"] == JobMode.HOSTED,
        model=body["model"] or body["default_model"],
        egress=bool(body["allow_hosts"]),
    )


def allowed_hosts(patterns: list[str], mode: JobMode) -> list[str]:
    """The patterns as they are kept.

    Raises:
        UsageMistake: one of them names no host, or the job has no container.
    """
    try:
        parsed = parse_patterns(patterns)
    except PatternRefused as error:
        raise UsageMistake(f"--allow-host: {error}") from None
    if parsed and mode is JobMode.IN_PROCESS:
        raise UsageMistake("--allow-host is for jobs in a container; an in-process job runs no commands")
    return [str(pattern) for pattern in parsed]


def existing(workspace: Path | None) -> Path | None:
    """The workspace, absolute.

    Raises:
        UsageMistake: it is no directory.
    """
    if workspace is None:
        return None
    if not workspace.is_dir():
        raise UsageMistake(
            f"the workspace {workspace} is not a directory; give an existing one to --workspace"
        )
    return workspace.absolute()


def chosen_model(asked: str, output: Output, *, agent: str = "", needed: bool = True) -> str:
    """The model to use, as `prefix:name`; a script's path made absolute. "" is none.

    Args:
        asked: by `--model`.
        output: told which one it is, and why.
        agent: whose definition may name another one.
        needed: refuse when nothing names one.

    Raises:
        UsageMistake: nothing or too much names one, or its script is not there.
    """
    try:
        choice = resolve_model(asked or None, os.environ)
    except (NoModelChosen, ValueError) as error:
        if not needed and isinstance(error, NoModelChosen) and not error.choices:
            output.say("no model: nothing names one" + (f", unless agent {agent} does" if agent else ""))
            return ""
        raise UsageMistake(str(error)) from None
    unless = f", unless agent {agent} names one" if agent else ""
    prefix, _, name = choice.model.partition(":")
    if prefix != SCRIPTED:
        output.say(f"model {choice.model} ({choice.reason}{unless})")
        return choice.model
    path = Path(name).expanduser().absolute()
    if not path.is_file():
        raise UsageMistake(f"the script {path} is not a file; scripted:PATH names a script of turns")
    output.say(f"model {choice.model} ({choice.reason}{unless})")
    return f"{prefix}:{path}"


def _memory_bytes(text: str) -> int | None:
    size = parse_size(text) if text else None
    if size is not None and size < LEAST_MEMORY_BYTES:
        raise UsageMistake(f"--memory {text}: a job needs 64m at least")
    return size


def parse_size(text: str) -> int:
    """Bytes of a size such as `512m` or `2g`.

    Raises:
        UsageMistake: it is none.
    """
    units = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
    lowered = text.strip().lower().removesuffix("b").removesuffix("i")
    number, unit = (lowered[:-1], lowered[-1]) if lowered[-1:].isalpha() else (lowered, "")
    try:
        size = int(float(number) * units[unit])
    except (ValueError, KeyError, OverflowError):
        size = 0
    if size <= 0:
        raise UsageMistake(f"{text!r} is not a size; write it like 512m or 2g")
    return size

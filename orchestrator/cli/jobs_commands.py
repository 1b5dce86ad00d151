"""`portside jobs`: everything about a job after it was launched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from orchestrator.cli import run as runs
from orchestrator.cli.client import OperatorClient
from orchestrator.cli.failures import CommandFailed
from orchestrator.cli.invocation import AsJson, finish, settings_from_environment
from orchestrator.cli.job_ids import SHORT, job_named
from orchestrator.cli.output import Output
from orchestrator.cli.patch import apply_patch, in_words
from orchestrator.cli.run_command import existing
from orchestrator.cli.session import Needs, desk_for, orchestrator_for
from orchestrator.cli.summary import calls_of, calls_table, table
from orchestrator.cli.timeline import TimelinePrinter
from orchestrator.cli.visible import one_line
from orchestrator.cli.watching import see_to_end
from orchestrator.domain.jobs import JobMode, JobState

app = typer.Typer(name="jobs", help="Jobs: look, follow, talk to, end, apply.", no_args_is_help=True)
JobArg = Annotated[str, typer.Argument(metavar="ID", help="A job's id, or a unique end or beginning of it.")]


@app.command("list")
def list_jobs(
    state: Annotated[list[JobState] | None, typer.Option(help="Only jobs in this state.")] = None,
    as_json: AsJson = False,
) -> None:
    """List jobs, newest first."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        async with desk_for(settings, output.say) as client:
            wanted = {"state": [str(one) for one in state]} if state else {}
            jobs: list[dict[str, Any]] = await client.get("/api/v1/jobs", **wanted)
        rows = [(job["id"], job["state"], job["created_at"][:16], job["model"], job["title"]) for job in jobs]
        output.show(
            jobs,
            table(
                ("id", "state", "created", "model", "title"),
                rows,
                empty="no jobs in this state" if state else "no jobs yet; portside run begins one",
            ),
        )

    finish(work())


@app.command()
def show(job: JobArg, as_json: AsJson = False) -> None:
    """Show a job with its tool calls and what the first call of each tool was worth."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        async with desk_for(settings, output.say) as client:
            found = await job_named(client, job)
            calls = calls_of(await client.timeline(found["id"]))
        lines = "\n".join(f"{name:<14} {one_line(str(value), 2000)}" for name, value in _facts(found))
        output.show({**found, "calls": calls}, lines, *([calls_table(calls)] if calls else []))

    finish(work())


@app.command()
def logs(
    job: JobArg,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job has ended.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print a job's timeline up to now."""
    if follow:
        attach(job, as_json=as_json)
        return
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        async with desk_for(settings, output.say) as client:
            events = await client.timeline((await job_named(client, job))["id"])
        printer = TimelinePrinter(output.console)
        for event in events:
            if as_json:
                output.json_line({"event": event})
            else:
                printer.show(event)

    finish(work())


@app.command()
def attach(job: JobArg, as_json: AsJson = False) -> None:
    """Follow a job's timeline live, to its end."""
    settings, output = settings_from_environment(), Output(as_json)

    async def begin(client: OperatorClient) -> str:
        return (await job_named(client, job))["id"]

    async def conclude(client: OperatorClient, job_id: str, events: list[dict[str, Any]]) -> int:
        nothing = runs.RunRequest({}, None, include_git=False, apply=False)
        return await runs.conclude(client, job_id, events, nothing, output)

    async def work() -> int:
        async with desk_for(settings, output.say) as client:
            found = await job_named(client, job)
        needs = _needs(found) if not JobState(found["state"]).terminal else Needs(engine=False, tools=False)
        return await see_to_end(settings, output, needs, begin=begin, conclude=conclude, cancels=False)

    finish(work())


@app.command()
def prompt(job: JobArg, text: str, as_json: AsJson = False) -> None:
    """Say something to a job; its agent reads it before its next request."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        async with desk_for(settings, output.say) as client:
            found = await job_named(client, job)
            await client.post(f"/api/v1/jobs/{found['id']}/prompt", {"text": text})
        output.show({"job_id": found["id"]}, "told")

    finish(work())


@app.command()
def cancel(
    job: JobArg,
    wait: Annotated[bool, typer.Option("--wait", help="Come back when nothing of it runs.")] = False,
    as_json: AsJson = False,
) -> None:
    """Ask a job to end."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        async with desk_for(settings, output.say) as client:
            found = await job_named(client, job)
            found = await client.post(f"/api/v1/jobs/{found['id']}/cancel")
            ending = not JobState(found["state"]).terminal
            alone = client.embedded
        if ending and (wait or alone):  # with no orchestrator about, nobody else would stop it
            found = await _ended(found)
        output.show(found, f"job {found['id']} is {found['state']}")

    async def _ended(found: dict[str, Any]) -> dict[str, Any]:
        async with orchestrator_for(settings, output.say, _needs(found)) as client:
            async for _event in client.events(found["id"]):
                pass
            return await client.get(f"/api/v1/jobs/{found['id']}")

    finish(work())


@app.command()
def diff(job: JobArg, as_json: AsJson = False) -> None:
    """Print a job's changes, as git apply takes them."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        async with desk_for(settings, output.say) as client:
            found = await job_named(client, job)
            patch = await _patch(client, found)
        if as_json:
            output.json({"job_id": found["id"], "diff": patch.decode("utf-8", "replace")})
        else:
            output.diff(patch)

    finish(work())


@app.command()
def apply(
    job: JobArg,
    workspace: Annotated[Path, typer.Option(help="Where the workspace came from.")] = Path(),
    check: Annotated[bool, typer.Option("--check", help="Only say whether and how it would go.")] = False,
    as_json: AsJson = False,
) -> None:
    """Apply a job's changes to a directory, merged with yours: all of them, or none."""
    settings, output = settings_from_environment(), Output(as_json)
    directory = existing(workspace) or Path.cwd()

    async def work() -> None:
        async with desk_for(settings, output.say) as client:
            found = await job_named(client, job)
            patch = await _patch(client, found)
            asked = runs.application(client, found["id"], patch, directory, output, check=check)
            applied = await apply_patch(settings, asked)
        said = {"job_id": found["id"], "workspace": str(directory), "changed": bool(applied.files)}
        output.show({**said, **asdict(applied), "check": check}, in_words(applied, asked))

    finish(work())


@app.command("rm")
def remove(jobs: Annotated[list[str], typer.Argument(metavar="ID")], as_json: AsJson = False) -> None:
    """Forget jobs that have ended."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        async with desk_for(settings, output.say) as client:
            ids = [(await job_named(client, one))["id"] for one in jobs]
            for job_id in dict.fromkeys(ids):
                await client.delete(f"/api/v1/jobs/{job_id}")
        output.show({"removed": ids}, "\n".join(f"removed {one}" for one in ids))

    finish(work())


async def _patch(client: OperatorClient, job: dict[str, Any]) -> bytes:
    if job["changes_bytes"] is None:
        raise CommandFailed(f"job {job['id'][-SHORT:]} is {job['state']} and has left no changes")
    return await client.bytes(f"/api/v1/jobs/{job['id']}/diff")


def _needs(job: dict[str, Any]) -> Needs:
    return Needs(engine=job["mode"] == JobMode.HOSTED, tools=False)


def _facts(job: dict[str, Any]) -> Sequence[tuple[str, object]]:
    shown = (
        "id",
        "title",
        "state",
        "reason",
        "message",
        "agent",
        "network",
        "mode",
        "model",
        "image",
        "command",
        "allow_hosts",
    )
    later = (
        "attempt",
        "exit_code",
        "iterations",
        "model_requests",
        "tokens_used",
        "created_at",
        "finished_at",
        "changes_bytes",
    )
    facts = job | {"allow_hosts": ", ".join(job["allow_hosts"])}
    return [(name, facts[name]) for name in (*shown, *later) if facts[name] not in {None, ""}]

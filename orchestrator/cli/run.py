"""`portside run`: pack the workspace, launch the job, watch it, show or apply its diff."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anyio.to_thread import run_sync

from orchestrator.cli.client import ApiProblem, OperatorClient
from orchestrator.cli.failures import JOB_FAILED
from orchestrator.cli.output import Output
from orchestrator.cli.patch import Application, apply_patch, in_words
from orchestrator.cli.summary import calls_of, calls_table
from orchestrator.cli.visible import one_line, visible
from orchestrator.cli.workspace import look_at


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What `portside run` was asked.

    Attributes:
        body: the job, as the API takes it, without its workspace.
        workspace: packed and uploaded; None starts with an empty one.
        apply: apply the diff to the workspace when the job completed.
    """

    body: dict[str, Any]
    workspace: Path | None
    include_git: bool
    apply: bool


async def launch(client: OperatorClient, request: RunRequest) -> dict[str, Any]:
    """Upload the workspace and accept the job; answers it as the API shows it."""
    body = dict(request.body)
    if request.workspace is not None:
        workspace = await run_sync(
            lambda folder: look_at(folder, include_git=request.include_git), request.workspace
        )
        stored = await client.upload("/api/v1/workspaces", workspace.tar())
        body["workspace_sha256"] = stored["sha256"]
    return await client.post("/api/v1/jobs", body)


async def conclude(
    client: OperatorClient,
    job_id: str,
    events: list[dict[str, Any]],
    request: RunRequest,
    output: Output,
) -> int:
    """Show the diff and every call's verdict, and apply the diff if asked.

    Returns:
        The exit code: 0, or 3 when the job failed.
    """
    job = await client.get(f"/api/v1/jobs/{job_id}")
    patch = b""
    if job["changes_bytes"] is not None:
        patch = await client.bytes(f"/api/v1/jobs/{job['id']}/diff")
    done = job["state"] == "completed"
    applies = done and request.apply and request.workspace is not None
    if output.as_json:
        output.json_line({"job": job, "diff": patch.decode("utf-8", "replace")})
    else:
        _show(job, events, patch, output)
        if done and patch.strip() and not applies:
            output.console.print(
                f"apply it with: {apply_command(job['id'], request.workspace)}", style="bold", markup=False
            )
    if applies and request.workspace is not None:
        asked = application(client, job["id"], patch, request.workspace, output)
        output.say(in_words(await apply_patch(client.settings, asked), asked))
    return 0 if done else JOB_FAILED


def apply_command(job_id: str, workspace: Path | None) -> str:
    """What to type, where the person stands, to apply a job's changes to where its files came from."""
    elsewhere = workspace is not None and workspace != Path.cwd()
    return f"portside jobs apply {job_id}" + (
        f" --workspace {shlex.quote(str(workspace))}" if elsewhere else ""
    )


def application(
    client: OperatorClient, job_id: str, patch: bytes, directory: Path, output: Output, *, check: bool = False
) -> Application:
    """A job's patch for a directory, with the job's start to be had when it is needed."""

    async def start(to: Path) -> None:
        try:
            await client.download(f"/api/v1/jobs/{job_id}/workspace", to)
        except ApiProblem as problem:
            if problem.body.get("code") != "not_found":
                raise

    return Application(job_id, patch, directory, start, output.say, check=check)


def _show(job: dict[str, Any], events: list[dict[str, Any]], patch: bytes, output: Output) -> None:
    console = output.console
    if patch.strip():
        output.diff(patch)
    calls = calls_of(events)
    if calls:
        console.print(calls_table(calls))
    if job["message"]:
        console.print(visible(job["message"]), markup=False, highlight=False)
    if job["state"] != "completed":
        console.print(
            f"job {job['id']} {job['state']}: {one_line(job['reason'], 2000)}", style="bold red", markup=False
        )
    elif not patch.strip():
        console.print("the job changed no files", style="bold", markup=False)

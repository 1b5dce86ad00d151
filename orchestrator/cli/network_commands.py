"""`portside network`: what goes on between agents, and a human's part in it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any
from urllib.parse import quote

import typer

from orchestrator.cli import agents_commands, network_views
from orchestrator.cli.agent_options import NetworkName
from orchestrator.cli.client import OperatorClient
from orchestrator.cli.counted import counted
from orchestrator.cli.failures import JOB_FAILED, UsageMistake
from orchestrator.cli.invocation import AsJson, finish, settings_from_environment
from orchestrator.cli.output import Output
from orchestrator.cli.session import desk_for
from orchestrator.cli.visible import one_line
from orchestrator.domain.network.task_states import TaskState

app = typer.Typer(name="network", help="What agents do together.", no_args_is_help=True)
app.command("agents")(agents_commands.list_agents)
Human = Annotated[str, typer.Option("--as", metavar="NAME", help="The human agent that you are.")]
Words = Annotated[str, typer.Argument(metavar="TEXT")]
Most = Annotated[int, typer.Option(min=1, max=1000, help="How many at most.")]
_MOVES = {
    "accept": "accepted",
    "decline": "cancelled",
    "start": "working",
    "block": "blocked",
    "complete": "completed",
    "fail": "failed",
    "cancel": "cancelled",
}


@app.command("status")
def status(network: NetworkName = "", as_json: AsJson = False) -> None:
    """Show a network in numbers."""
    _show(network, "status", network_views.status_lines, as_json=as_json)


@app.command("threads")
def threads(network: NetworkName = "", limit: Most = 50, as_json: AsJson = False) -> None:
    """List threads, the youngest first."""
    _show(network, f"threads?limit={limit}", network_views.threads_table, as_json=as_json)


@app.command("thread")
def thread(
    thread_id: Annotated[str, typer.Argument(metavar="ID")],
    network: NetworkName = "",
    as_json: AsJson = False,
) -> None:
    """Show a thread with its messages."""
    _show(network, f"threads/{quote(thread_id, safe='')}", network_views.thread_lines, as_json=as_json)


@app.command("tasks")
def tasks(
    network: NetworkName = "",
    state: Annotated[list[TaskState] | None, typer.Option(help="Only tasks in this state.")] = None,
    limit: Most = 50,
    as_json: AsJson = False,
) -> None:
    """List tasks, those changed last first."""
    wanted = "".join(f"&state={quote(one, safe='')}" for one in state or ())
    _show(network, f"tasks?limit={limit}{wanted}", network_views.tasks_table, as_json=as_json)


@app.command("claims")
def claims(network: NetworkName = "", as_json: AsJson = False) -> None:
    """List the claims that hold now."""
    _show(network, "claims", network_views.claims_table, as_json=as_json)


@app.command("verify")
def verify(
    thread_id: Annotated[str, typer.Argument(metavar="THREAD")] = "",
    network: NetworkName = "",
    as_json: AsJson = False,
) -> None:
    """Check the hub's signatures on messages; ends with 3 when one was changed, forged or removed."""

    async def work(client: OperatorClient, base: str, output: Output) -> int:
        asked = {"thread_id": thread_id} if thread_id else {}
        verdict: dict[str, Any] = await client.get(f"{base}/verify", **asked)
        faults = verdict["faults"]
        lines = [
            f"thread {one['thread_id']} message {one['sequence']}: {one_line(one['problem'])}"
            for one in faults
        ]
        count = f"{counted(verdict['signed'], 'message')} in {counted(verdict['threads'], 'thread')}"
        sound = "is as the hub took it" if verdict["signed"] == 1 else "are as the hub took them"
        lines.append(f"{counted(len(faults), 'fault')} in {count}" if faults else f"{count} {sound}")
        if verdict["unsigned"]:
            lines.append(f"{verdict['unsigned']} older messages are unsigned: nothing is known of them")
        output.show(verdict, "\n".join(lines))
        return JOB_FAILED if faults else 0

    _run(network, work, as_json=as_json)


@app.command("inbox")
def inbox(human: Human, network: NetworkName = "", as_json: AsJson = False) -> None:
    """Show what waits for a human; what needs no answer is shown once."""

    async def work(client: OperatorClient, base: str, output: Output) -> int:
        path = f"{base}/agents/{quote(human, safe='')}/inbox"
        items: list[dict[str, Any]] = await client.get(path)
        output.show(items, network_views.inbox_lines(items))
        await client.post(f"{path}/seen", {"delivery_ids": [one["delivery_id"] for one in items]})
        return 0

    _run(network, work, as_json=as_json)


@app.command("ask")
def ask(
    to: Annotated[str, typer.Argument(metavar="AGENT")],
    text: Words,
    human: Human,
    subject: Annotated[str, typer.Option(help="What lists call the thread.")] = "",
    network: NetworkName = "",
    as_json: AsJson = False,
) -> None:
    """Ask an agent or a group, as a human."""
    body = {"to": to, "body": text, "subject": subject or None}
    _speak(network, human, "ask", body, as_json=as_json)


@app.command("reply")
def reply(
    thread_id: Annotated[str, typer.Argument(metavar="THREAD")],
    text: Words,
    human: Human,
    network: NetworkName = "",
    as_json: AsJson = False,
) -> None:
    """Answer in a thread, as a human."""
    _speak(network, human, "reply", {"thread_id": thread_id, "body": text}, as_json=as_json)


@app.command("delegate")
def delegate(
    objective: Words,
    human: Human,
    to: Annotated[str, typer.Option(help="An agent or a group.")] = "",
    title: Annotated[str, typer.Option(help="What lists call it.")] = "",
    criterion: Annotated[list[str] | None, typer.Option(help="It is done when.")] = None,
    resource: Annotated[str, typer.Option(help="What it is about; chooses who, without --to.")] = "",
    network: NetworkName = "",
    as_json: AsJson = False,
) -> None:
    """Give an agent a task, as a human."""
    body = {
        "objective": objective,
        "title": title or None,
        "acceptance_criteria": criterion or [],
        "to": to or None,
        "resource": resource or None,
    }

    async def work(client: OperatorClient, base: str, output: Output) -> int:
        made = await client.post(f"{base}/agents/{quote(human, safe='')}/tasks", body)
        output.show(made, network_views.task_lines(made))
        return 0

    _run(network, work, as_json=as_json)


@app.command("task")
def task(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[MOVE] ID",
            help="A task's id; before it accept, decline, start, block, complete, fail or cancel.",
        ),
    ],
    human: Annotated[str, typer.Option("--as", metavar="NAME", help="The human agent that moves it.")] = "",
    reason: Annotated[str, typer.Option(help="Evidence, blocker or cause; some moves need one.")] = "",
    network: NetworkName = "",
    as_json: AsJson = False,
) -> None:
    """Show a task with its history, or move it as a human."""
    *move, task_id = words
    if not move:
        _show(network, f"tasks/{quote(task_id, safe='')}", network_views.task_lines, as_json=as_json)
        return
    if len(move) > 1 or move[0] not in _MOVES:
        raise UsageMistake(f"a task can be moved by {', '.join(_MOVES)}; then comes its ID")
    if not human:
        raise UsageMistake(f"say who you are: portside network task {move[0]} {task_id} --as NAME")
    body = {"status": _MOVES[move[0]], "reason": reason}

    async def work(client: OperatorClient, base: str, output: Output) -> int:
        path = f"{base}/agents/{quote(human, safe='')}/tasks/{quote(task_id, safe='')}"
        moved = await client.post(path, body)
        output.show(moved, f"task {moved['task_id']} is {moved['state']}")
        return 0

    _run(network, work, as_json=as_json)


def _speak(network: str, human: str, what: str, body: dict[str, Any], *, as_json: bool) -> None:
    async def work(client: OperatorClient, base: str, output: Output) -> int:
        sent = await client.post(f"{base}/agents/{quote(human, safe='')}/{what}", body)
        output.show(sent, f"sent, in thread {sent['thread_id']}")
        return 0

    _run(network, work, as_json=as_json)


def _show(network: str, path: str, lines: Callable[[Any], Any], *, as_json: bool) -> None:
    async def work(client: OperatorClient, base: str, output: Output) -> int:
        found = await client.get(f"{base}/{path}")
        output.show(found, lines(found))
        return 0

    _run(network, work, as_json=as_json)


def _run(
    network: str, work: Callable[[OperatorClient, str, Output], Awaitable[int]], *, as_json: bool
) -> None:
    settings, output = settings_from_environment(), Output(as_json)

    async def run() -> int:
        async with desk_for(settings, output.say) as client:
            where = quote(network or settings.network, safe="")
            return await work(client, f"/api/v1/networks/{where}", output)

    finish(run())

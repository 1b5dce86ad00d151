"""`portside agents`: who is in a network, and what starts when work waits for them."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

import typer

from orchestrator.cli import agent_options as options
from orchestrator.cli.client import OperatorClient
from orchestrator.cli.failures import UsageMistake
from orchestrator.cli.invocation import AsJson, finish, settings_from_environment
from orchestrator.cli.output import Output
from orchestrator.cli.session import desk_for
from orchestrator.cli.summary import table
from orchestrator.cli.visible import one_line, visible
from orchestrator.domain.network.agents import AgentKind

app = typer.Typer(name="agents", help="Agents of a network: their profiles.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="NAME")]


@app.command("list")
def list_agents(network: options.NetworkName = "", as_json: AsJson = False) -> None:
    """List a network's agents."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        async with desk_for(settings, output.say) as client:
            agents: list[dict[str, Any]] = await client.get(agents_path(network or settings.network))
            await tell_of_file(client, output)
        output.show(agents, table(("agent", "kind", "from", "serves", "waits", "summary"), map(_row, agents)))

    finish(work())


@app.command("show")
def show(name: Name, network: options.NetworkName = "", as_json: AsJson = False) -> None:
    """Show an agent: its whole profile, its instances, and what waits for it."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        async with desk_for(settings, output.say) as client:
            agent = await client.get(agents_path(network or settings.network, name))
            await tell_of_file(client, output)
        output.show(agent, "\n".join(_lines(agent)))

    finish(work())


@app.command("add")
def add(
    name: Name,
    network: options.NetworkName = "",
    kind: options.Kind = AgentKind.WORKER,
    summary: options.Summary = None,
    description: options.Description = None,
    url: options.Url = None,
    payment_address: options.Payment = None,
    profile_version: options.Version = None,
    capability: options.Capabilities = None,
    skill: options.Skills = None,
    tag: options.Tags = None,
    example: options.Examples = None,
    group: options.Groups = None,
    responsible: options.Duties = None,
    image: options.Image = None,
    model: options.Model = None,
    mission: options.Mission = None,
    autostart: options.Autostart = None,
    allow_host: options.AllowHosts = None,
    as_json: AsJson = False,
) -> None:
    """Define an agent. Options that stand for lists may be repeated."""
    fields = options.profile(
        kind=kind,
        summary=summary,
        description=description,
        url=url,
        payment_address=payment_address,
        version=profile_version,
        capabilities=capability,
        skills=skill,
        tags=tag,
        examples=example,
        groups=group,
        responsibilities=responsible,
        image=image,
        model=model,
        mission=mission,
        autostart=autostart,
        allow_hosts=allow_host,
    )
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        where = network or settings.network
        async with desk_for(settings, output.say) as client:
            agent = await client.post(agents_path(where), {"name": name, **fields})
        output.show(agent, f"added {agent['name']} to the network {agent['network']}")

    finish(work())


@app.command("update")
def update(
    name: Name,
    network: options.NetworkName = "",
    summary: options.Summary = None,
    description: options.Description = None,
    url: options.Url = None,
    payment_address: options.Payment = None,
    profile_version: options.Version = None,
    capability: options.Capabilities = None,
    skill: options.Skills = None,
    tag: options.Tags = None,
    example: options.Examples = None,
    group: options.Groups = None,
    responsible: options.Duties = None,
    image: options.Image = None,
    model: options.Model = None,
    mission: options.Mission = None,
    autostart: options.Autostart = None,
    allow_host: options.AllowHosts = None,
    as_json: AsJson = False,
) -> None:
    """Change an agent's profile: what is named is replaced, lists as a whole, and the rest stays."""
    fields = options.profile(
        summary=summary,
        description=description,
        url=url,
        payment_address=payment_address,
        version=profile_version,
        capabilities=capability,
        skills=skill,
        tags=tag,
        examples=example,
        groups=group,
        responsibilities=responsible,
        image=image,
        model=model,
        mission=mission,
        autostart=autostart,
        allow_hosts=allow_host,
    )
    if not fields:
        raise UsageMistake("say what to change; `portside agents update --help` lists what there is")
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        async with desk_for(settings, output.say) as client:
            agent = await client.patch(agents_path(network or settings.network, name), fields)
        output.show(agent, f"changed {agent['name']}: {', '.join(sorted(fields))}")

    finish(work())


@app.command("remove")
def remove(
    name: Name,
    network: options.NetworkName = "",
    force: Annotated[
        bool, typer.Option("--force", help="Even with work at hand: cancel it, and its jobs.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Forget an agent. Its threads, tasks and artifacts stay readable."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        path = agents_path(network or settings.network, name) + ("?force=true" if force else "")
        async with desk_for(settings, output.say) as client:
            await client.delete(path)
        output.show({"removed": name}, f"removed {visible(name)}")

    finish(work())


def agents_path(network: str, name: str = "") -> str:
    """Where a network's agents, or one of them, are in the API."""
    path = f"/api/v1/networks/{quote(network, safe='')}/agents"
    return f"{path}/{quote(name, safe='')}" if name else path


async def tell_of_file(client: OperatorClient, output: Output) -> None:
    """Say what is wrong with agents.yaml, if anything is."""
    file = await client.get("/api/v1/agents-file")
    if file["problem"]:
        output.say(f"the agents stay as they are: {visible(file['problem'])}")
    for line in file["staying"]:
        output.say(visible(line))


def _row(agent: dict[str, Any]) -> tuple[str, ...]:
    waits = f"{agent['unfinished_tasks']} tasks, {agent['unread_messages']} messages"
    return (
        agent["name"],
        agent["kind"],
        agent["managed_by"],
        ", ".join(one["state"] for one in agent["instances"]) or _absent(agent),
        waits if agent["unfinished_tasks"] or agent["unread_messages"] else "",
        one_line(agent["summary"], 80),
    )


def _absent(agent: dict[str, Any]) -> str:
    return "when work waits" if agent["launch"]["autostart"] else "nobody"


def _lines(agent: dict[str, Any]) -> list[str]:
    lines = [f"{agent['name']} ({agent['kind']}, network {agent['network']}, from {agent['managed_by']})"]
    lines += [
        f"  {name}: {visible(agent[name]).strip()}"
        for name in ("summary", "description", "url", "payment_address", "version")
        if agent[name]
    ]
    lines += [
        f"  {name}: {', '.join(visible(one) for one in agent[name])}"
        for name in ("groups", "tags", "examples")
        if agent[name]
    ]
    for name in ("capabilities", "skills"):
        lines += [f"  {name}: {_described(one)}" for one in agent[name]]
    for duty in agent["responsibilities"]:
        actions = ", ".join(visible(one) for one in duty["actions"]) or "any action"
        lines.append(f"  responsible: {visible(duty['resource_key'] or 'any resource')} ({actions})")
    lines += [f"  launch {name}: {one_line(str(of))}" for name, of in agent["launch"].items() if of]
    lines += [
        f"  instance {one['instance_id']}: {one['state']}, job {one['job_id'] or 'none'}"
        for one in agent["instances"]
    ]
    lines.append(f"  waits: {agent['unfinished_tasks']} tasks, {agent['unread_messages']} messages")
    return lines


def _described(one: dict[str, str]) -> str:
    what = f": {one_line(one['description'])}" if one["description"] else ""
    return visible(one["name"]) + what

"""A profile's options on the command line, and what the API takes for them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from orchestrator.cli.failures import UsageMistake
from orchestrator.domain.network.agents import AgentKind

NetworkName = Annotated[str, typer.Option("--network", help="Agent network; PORTSIDE_NETWORK else.")]
Kind = Annotated[AgentKind, typer.Option(help="A worker is served by jobs, a human by you.")]
Summary = Annotated[str | None, typer.Option(help="One line that others find it by.")]
Description = Annotated[str | None, typer.Option(help="What it does, in full.")]
Url = Annotated[str | None, typer.Option(help="Where there is more about it.")]
Payment = Annotated[str | None, typer.Option("--payment-address", help="Where it is paid.")]
Version = Annotated[str | None, typer.Option("--profile-version", help="Of the agent.")]
Capabilities = Annotated[
    list[str] | None, typer.Option("--capability", metavar="NAME[: WHAT]", help="Something it can do.")
]
Skills = Annotated[
    list[str] | None, typer.Option("--skill", metavar="NAME[: WHAT]", help="Something it is good at.")
]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="For exact searches.")]
Examples = Annotated[list[str] | None, typer.Option("--example", help="A request that it can serve.")]
Groups = Annotated[list[str] | None, typer.Option("--group", help="A name that reaches all its members.")]
Duties = Annotated[
    list[str] | None,
    typer.Option("--responsible", metavar="RESOURCE[=ACTION,...]", help="What it answers for."),
]
Image = Annotated[str | None, typer.Option(help="Image that its jobs run in.")]
Model = Annotated[str | None, typer.Option(help="openai:M, anthropic:M or scripted:PATH.")]
Mission = Annotated[str | None, typer.Option(help="What every job of it is told first.")]
Autostart = Annotated[
    bool | None, typer.Option("--autostart/--no-autostart", help="Start a job when work waits for it.")
]

AllowHosts = Annotated[
    list[str] | None,
    typer.Option("--allow-host", metavar="PATTERN", help="Host that the commands of its jobs may reach."),
]
_LAUNCH = ("image", "model", "mission", "autostart", "allow_hosts")


def profile(**given: Any) -> dict[str, Any]:
    """The fields that were given, as the API takes them; a list replaces the old one whole.

    Raises:
        UsageMistake: an option can't be read.
    """
    launch = {name: given[name] for name in _LAUNCH if given.get(name) is not None}
    for name in _LAUNCH:
        given.pop(name, None)
    for name in ("capabilities", "skills"):
        if given.get(name) is not None:
            given[name] = [_described(one) for one in given[name]]
    if given.get("responsibilities") is not None:
        given["responsibilities"] = [_duty(one) for one in given["responsibilities"]]
    fields = {name: value for name, value in given.items() if value is not None}
    return fields | ({"launch": launch} if launch else {})


def _described(text: str) -> dict[str, str]:
    name, _, description = text.partition(":")
    if not name.strip():
        raise UsageMistake(f"{text[:60]!r} has no name before the colon")
    return {"name": name.strip(), "description": description.strip()}


def _duty(text: str) -> dict[str, Any]:
    key, _, actions = text.partition("=")
    named = [one.strip() for one in actions.split(",") if one.strip()]
    return {"resource_key": key.strip() or None, "actions": named}

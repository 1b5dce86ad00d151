"""`portside representatives`: who acts for whom in the networks, and with which rights."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

import typer

from orchestrator.cli.agent_tokens import Days, show_given
from orchestrator.cli.invocation import AsJson, finish, settings_from_environment
from orchestrator.cli.output import Output
from orchestrator.cli.session import desk_for
from orchestrator.cli.summary import table
from orchestrator.domain.network.rights import Right

app = typer.Typer(
    name="representatives", help="Agents that act for a person across networks.", no_args_is_help=True
)
_PATH = "/api/v1/representatives"
Name = Annotated[str, typer.Argument(metavar="NAME")]
Network = Annotated[str, typer.Argument(metavar="NETWORK")]
Rights = Annotated[
    list[Right] | None,
    typer.Argument(metavar="RIGHT", help="observe, communicate, delegate, operate; none takes all away."),
]


@app.command("list")
def list_representatives(as_json: AsJson = False) -> None:
    """List the representatives and what they may do."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        async with desk_for(settings, output.say) as client:
            found: list[dict[str, Any]] = await client.get(_PATH)
        rows = [(one["name"], one["person"], _rights(one["effective"])) for one in found]
        output.show(
            found,
            table(
                ("representative", "acts for", "may"),
                rows,
                empty="no representatives; add one: portside representatives add NAME",
            ),
        )

    finish(work())


@app.command()
def add(
    name: Name,
    person: Annotated[
        str, typer.Option("--person", help="For whom it acts; operator is you, who may do everything.")
    ] = "operator",
    as_json: AsJson = False,
) -> None:
    """Add a representative. It may do nothing until it is granted something."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        async with desk_for(settings, output.say) as client:
            before: dict[str, str] = {one["name"]: one["person"] for one in await client.get(_PATH)}
            made: dict[str, Any] = await client.put(f"{_PATH}/{_quoted(name)}", {"person": person})
        output.show(made, _added(made["name"], made["person"], before.get(made["name"])))

    finish(work())


@app.command()
def grant(name: Name, network: Network, rights: Rights = None, as_json: AsJson = False) -> None:
    """Grant exactly these rights in a network. It never may more than its person."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        path = f"{_PATH}/{_quoted(name)}/grants/{_quoted(network)}"
        async with desk_for(settings, output.say) as client:
            found: dict[str, Any] = await client.put(path, {"rights": rights or []})
        output.show(found, f"{found['name']} may: {_rights(found['effective']) or 'nothing'}", *_not(found))

    finish(work())


@app.command()
def allow(
    person: Annotated[str, typer.Argument(metavar="PERSON")],
    network: Network,
    rights: Rights = None,
    as_json: AsJson = False,
) -> None:
    """Give a person exactly this access to a network: no representative of theirs may more."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        path = f"/api/v1/people/{_quoted(person)}/access/{_quoted(network)}"
        async with desk_for(settings, output.say) as client:
            await client.put(path, {"rights": rights or []})
        said = ", ".join(rights or []) or "nothing"
        output.show({"person": person, "network": network, "rights": rights or []}, f"{person} may: {said}")

    finish(work())


@app.command("rm")
def remove(name: Name, as_json: AsJson = False) -> None:
    """Forget a representative; its tokens open nothing any more."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        async with desk_for(settings, output.say) as client:
            await client.delete(f"{_PATH}/{_quoted(name)}")
        output.show({"removed": name}, f"removed {name}")

    finish(work())


@app.command()
def token(name: Name, days: Days = 30.0, as_json: AsJson = False) -> None:
    """Give a representative a token for /mcp/control. It is shown this once."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        async with desk_for(settings, output.say) as client:
            asked = {"holder": "representative", "name": name, "days": days}
            given: dict[str, Any] = await client.post("/api/v1/tokens", asked)
        show_given(given, settings, output, "/mcp/control")

    finish(work())


def _added(name: str, person: str, before: str | None) -> str:
    if before == person:
        return f"{name} acts for {person} already; its grants stay"
    done = f"{name} acts for {person} now, no more for {before}; its grants are gone"
    next_step = f"next: portside representatives grant {name} NETWORK observe"
    return f"{done if before else f'added {name} for {person}'}; {next_step}"


def _not(found: dict[str, Any]) -> list[str]:
    """What was granted and its person may not: a line for each network."""
    lines: list[str] = []
    for network, granted in found["grants"].items():
        kept = [one for one in granted if one not in found["effective"].get(network, ())]
        if kept:
            lines.append(
                f"not in {network}: {', '.join(kept)}, which {found['person']} may not there; see:"
                " portside representatives allow --help"
            )
    return lines


def _rights(by_network: dict[str, list[str]]) -> str:
    return "; ".join(f"{network}: {', '.join(rights)}" for network, rights in by_network.items())


def _quoted(text: str) -> str:
    return quote(text, safe="")

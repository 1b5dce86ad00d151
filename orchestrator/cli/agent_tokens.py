"""`portside agents token` and its like: tokens for agents that are no job of Portside's."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

import typer

from orchestrator.cli.invocation import AsJson, finish, settings_from_environment
from orchestrator.cli.numbers import over_zero
from orchestrator.cli.output import Output
from orchestrator.cli.session import desk_for
from orchestrator.cli.summary import table
from orchestrator.settings import Settings

Network = Annotated[str, typer.Option("--network", help="Of the agent; PORTSIDE_NETWORK unless given.")]
Days = Annotated[
    float,
    typer.Option(
        "--days", metavar="NUMBER", parser=over_zero, help="How long the token is good; at most 366."
    ),
]


def token(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    network: Network = "",
    days: Days = 30.0,
    as_json: AsJson = False,
) -> None:
    """Give an agent from outside a token for the MCP endpoints. It is shown this once."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        async with desk_for(settings, output.say) as client:
            asked = {"holder": "agent", "name": name, "network": network, "days": days}
            given: dict[str, Any] = await client.post("/api/v1/tokens", asked)
        show_given(given, settings, output, "/mcp")

    finish(work())


def tokens(as_json: AsJson = False) -> None:
    """List the tokens that were given out."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        async with desk_for(settings, output.say) as client:
            given: list[dict[str, Any]] = await client.get("/api/v1/tokens")
        rows = [
            (
                one["id"],
                one["holder"],
                one["name"],
                one["network"],
                one["expires_at"][:16],
                "void" if one["revoked_at"] else "",
            )
            for one in given
        ]
        output.show(
            given,
            table(
                ("token", "for", "name", "network", "good until", ""),
                rows,
                empty="no tokens; give one: portside agents token NAME",
            ),
        )

    finish(work())


def revoke(
    ids: Annotated[list[str], typer.Argument(metavar="TOKEN")],
    as_json: AsJson = False,
) -> None:
    """Make tokens void. Their sessions end at once, and what those had taken goes back."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        async with desk_for(settings, output.say) as client:
            for one in dict.fromkeys(ids):
                await client.delete(f"/api/v1/tokens/{quote(one, safe='')}")
        output.show({"revoked": ids}, "\n".join(f"{one} is void" for one in dict.fromkeys(ids)))

    finish(work())


def show_given(given: dict[str, Any], settings: Settings, output: Output, path: str) -> None:
    """The token alone on standard output, so that it can be piped; how to use it beside it."""
    where = (
        f"http://{settings.listen}{path}"
        if settings.listen
        else f"{path} at the address that PORTSIDE_LISTEN of portside serve names"
    )
    about = given["about"]
    output.errors.print(
        f"{about['name']}: good until {about['expires_at'][:16]}; "
        f"send it as 'Authorization: Bearer ...' to {where}",
        style="dim",
        markup=False,
        highlight=False,
    )
    if output.as_json:
        output.json(given)
    else:
        output.raw(given["token"].encode() + b"\n")

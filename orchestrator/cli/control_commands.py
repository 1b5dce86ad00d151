"""`portside network confirm` and its like: what representatives ask of the operator, and tell."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich.text import Text

from orchestrator.cli.invocation import AsJson, finish, settings_from_environment
from orchestrator.cli.output import Output
from orchestrator.cli.session import desk_for
from orchestrator.cli.summary import table
from orchestrator.cli.visible import one_line, visible

_LINE_CHARS = 160


def confirmations(as_json: AsJson = False) -> None:
    """List what representatives want to do and may not without your yes."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        async with desk_for(settings, output.say) as client:
            found: list[dict[str, Any]] = await client.get("/api/v1/confirmations")
        rows = [
            (
                one["id"],
                one["network"],
                one_line(one["says"], _LINE_CHARS),
                one["expires_at"][11:19],
                "agreed" if one["confirmed_at"] else "",
            )
            for one in found
        ]
        output.show(
            found,
            table(
                ("confirmation", "network", "what", "until (UTC)", ""),
                rows,
                empty="nothing waits for your yes",
            ),
        )

    finish(work())


def confirm(
    confirmation_id: Annotated[str, typer.Argument(metavar="ID")],
    as_json: AsJson = False,
) -> None:
    """Agree to one of them: its representative can do it, once."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        path = f"/api/v1/confirmations/{quote(confirmation_id, safe='')}/confirm"
        async with desk_for(settings, output.say) as client:
            one: dict[str, Any] = await client.post(path, {})
        output.show(one, f"agreed until {one['expires_at'][11:19]} UTC: {one_line(one['says'], _LINE_CHARS)}")

    finish(work())


def channel(
    representative: Annotated[str | None, typer.Argument(metavar="REPRESENTATIVE")] = None,
    as_json: AsJson = False,
) -> None:
    """Show what representatives told you, and you them."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        query = f"?representative={quote(representative, safe='')}" if representative else ""
        async with desk_for(settings, output.say) as client:
            found: list[dict[str, Any]] = await client.get(f"/api/v1/channel{query}")
        output.show(found, *(Text(_line(one)) for one in found))

    finish(work())


def say(
    representative: Annotated[str, typer.Argument(metavar="REPRESENTATIVE")],
    text: Annotated[str, typer.Argument(metavar="TEXT")],
    conversation: Annotated[str | None, typer.Option("--conversation", help="To go on in.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say something to a representative; it reads it with control_channel_history."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        body = {"representative": representative, "body": text, "conversation_id": conversation}
        async with desk_for(settings, output.say) as client:
            said: dict[str, Any] = await client.post("/api/v1/channel", body)
        output.show(said, f"said, in conversation {said['conversation_id']}")

    finish(work())


def _line(one: dict[str, Any]) -> str:
    who = f"operator to {one['representative']}" if one["from_operator"] else one["representative"]
    return visible(f"{one['created_at'][:16]} {who} [{one['conversation_id']}]\n  {one['body']}")

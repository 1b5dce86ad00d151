"""`portside mcp`: MCP servers."""

from __future__ import annotations

import asyncio
import webbrowser
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich.text import Text

from orchestrator.cli.callback import listening
from orchestrator.cli.failures import FAILED, UsageMistake
from orchestrator.cli.given_text import read_text
from orchestrator.cli.invocation import AsJson, finish, settings_from_environment
from orchestrator.cli.mcp_trial import trial_lines, usable
from orchestrator.cli.output import Output
from orchestrator.cli.session import desk_for
from orchestrator.cli.summary import table
from orchestrator.cli.visible import one_line

app = typer.Typer(name="mcp", help="MCP servers.", no_args_is_help=True)
_TEST_S = 90.0
_PERSON_S = 600.0


@app.command()
def add(
    name: str,
    command: Annotated[list[str] | None, typer.Argument(metavar="-- COMMAND ARGS...")] = None,
    url: Annotated[str, typer.Option(help="Of a server that speaks streamable HTTP.")] = "",
    env: Annotated[list[str] | None, typer.Option(metavar="K=V", help="V may be ${secret:NAME}.")] = None,
    header: Annotated[list[str] | None, typer.Option(metavar="K=V", help="V may be ${secret:NAME}.")] = None,
    as_json: AsJson = False,
) -> None:
    """Add a server: a command to start, after --, or a URL."""
    settings, output = settings_from_environment(), Output(as_json)
    entry = server_entry(command or [], url, env or [], header or [], Path.cwd())

    async def work() -> None:
        async with desk_for(settings, output.say) as client:
            await client.put(f"/api/v1/mcp/{quote(name, safe='')}", {"config": entry})
        output.show({"name": name, "config": entry}, f"added {name}; try it with: portside mcp test {name}")

    finish(work())


@app.command("list")
def list_servers(as_json: AsJson = False) -> None:
    """List the servers and how they are."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        async with desk_for(settings, output.say, tools=True) as client:
            servers: list[dict[str, Any]] = await client.get("/api/v1/mcp")
            problem = (await client.get("/api/v1/mcp-file"))["problem"]
        rows = [
            (one["name"], one["transport"], one["state"], str(one["tool_count"]), one["reason"])
            for one in servers
        ]
        notes = [Text(f"not in use: {one_line(problem, 2000)}", style="red")] if problem else []
        output.show(
            servers,
            table(
                ("server", "transport", "state", "tools", "reason"),
                rows,
                empty="no MCP servers; add one: portside mcp add NAME -- COMMAND",
            ),
            *notes,
        )

    finish(work())


@app.command("test")
def try_server(name: str, as_json: AsJson = False) -> None:
    """Connect to a server once: who it is, how fast, its tools, and how each provider will see them."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> int:
        async with desk_for(settings, output.say) as client:
            path = f"/api/v1/mcp/{quote(name, safe='')}/test"
            server: dict[str, Any] = await client.post(path, {}, timeout_s=_TEST_S)
        output.show(server, *trial_lines(server))
        return 0 if usable(server) else FAILED

    finish(work())


@app.command("import")
def import_file(
    file: Annotated[Path, typer.Argument(help="Another client's configuration; - for standard input.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace servers that are configured differently.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Take in all servers of another client's file, or none: `mcpServers`, or VS Code's `servers`."""
    settings, output = settings_from_environment(), Output(as_json)
    body = {"text": read_text(file, "the servers"), "source": str(file), "replace": replace}

    async def work() -> None:
        async with desk_for(settings, output.say) as client:
            done: dict[str, Any] = await client.post("/api/v1/mcp-file/import", body)
        lines = [
            f"{word} {', '.join(done[word])}" for word in ("added", "replaced", "unchanged") if done[word]
        ]
        notes = [Text(one_line(one, 500), style="yellow") for one in done["notes"]]
        notes += [
            Text(f"the secret {one} is not stored yet; its server can't start without", style="yellow")
            for one in done["missing_secrets"]
        ]
        output.show(done, *lines, *notes)

    finish(work())


@app.command()
def remove(name: str, as_json: AsJson = False) -> None:
    """Forget a server."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        async with desk_for(settings, output.say) as client:
            await client.delete(f"/api/v1/mcp/{quote(name, safe='')}")
        output.show({"removed": name}, f"removed {name}")

    finish(work())


@app.command()
def login(
    name: str,
    browser: Annotated[bool, typer.Option(help="Open the page; else only its address is shown.")] = True,
    as_json: AsJson = False,
) -> None:
    """Log in at a server behind a URL, in a browser on this machine; the tokens are kept sealed."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        path = f"/api/v1/mcp/{quote(name, safe='')}/login"
        async with desk_for(settings, output.say) as client:
            port: int = (await client.get(path))["port"]
            async with listening(port) as callback:
                begun = await client.post(path, {"callback": callback.url}, timeout_s=_TEST_S)
                output.say(f"agree here: {begun['url']}")
                if browser:
                    await asyncio.to_thread(webbrowser.open, begun["url"])
                returned = await callback.returned(_PERSON_S)
            answer = await client.post(
                f"/api/v1/mcp-logins/{begun['id']}", {"returned": returned}, timeout_s=_TEST_S
            )
        output.show(answer, f"logged in at {name}; try it with: portside mcp test {name}")

    finish(work())


@app.command()
def logout(name: str, as_json: AsJson = False) -> None:
    """Forget the tokens that a login gave."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        async with desk_for(settings, output.say) as client:
            await client.delete(f"/api/v1/mcp/{quote(name, safe='')}/login")
        output.show({"name": name}, f"logged out of {name}")

    finish(work())


def server_entry(
    command: list[str], url: str, env: list[str], header: list[str], here: Path
) -> dict[str, Any]:
    """A server's entry as the `mcpServers` file holds it.

    A command that names files by where the caller stands is started from there.

    Raises:
        UsageMistake: it is neither a command nor a URL, or both.
    """
    if bool(command) == bool(url):
        raise UsageMistake("give either --url URL, or a command after --")
    if url and env:
        raise UsageMistake("--env is for a command; a URL takes --header")
    if command and header:
        raise UsageMistake("--header is for a URL; a command takes --env")
    if url:
        return {"url": url, **({"headers": _pairs(header, "--header")} if header else {})}
    entry: dict[str, Any] = {"command": command[0], "args": command[1:]}
    if env:
        entry["env"] = _pairs(env, "--env")
    if any(not Path(one).is_absolute() and (here / one).is_file() for one in command):
        entry["cwd"] = str(here)
    return entry


def _pairs(given: list[str], option: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name.strip():
            raise UsageMistake(f"{option} takes NAME=VALUE, not {name[:40]!r}")
        pairs[name.strip()] = value
    return pairs

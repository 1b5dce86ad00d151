"""`portside secrets`: values go in from a pipe or a prompt, and never come out."""

from __future__ import annotations

import getpass
import sys
from typing import Annotated, Any
from urllib.parse import quote

import typer

from orchestrator.cli.failures import UsageMistake
from orchestrator.cli.invocation import AsJson, finish, settings_from_environment
from orchestrator.cli.output import Output
from orchestrator.cli.session import desk_for
from orchestrator.cli.summary import table
from tool_registry.redaction import MIN_SECRET_CHARS

app = typer.Typer(name="secrets", help="Encrypted secrets, for jobs and MCP servers.", no_args_is_help=True)
_MAX_INPUT_BYTES = 1_048_576


@app.command("set")
def set_secret(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    values: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    as_json: AsJson = False,
) -> None:
    """Set a secret; its value is read from standard input, or asked for at a terminal."""
    if values or "=" in name:
        raise UsageMistake(
            "a value on the command line can be read by others: pipe it in, or wait to be asked"
        )
    settings, output = settings_from_environment(), Output(as_json)
    value = read_value(name)

    async def work() -> None:
        async with desk_for(settings, output.say) as client:
            stored: dict[str, Any] = await client.put(_path(name), {"value": value})
        if len(value) < MIN_SECRET_CHARS:
            output.say(f"under {MIN_SECRET_CHARS} characters: too short to be taken out of outputs")
        output.show(stored, f"set {stored['name']} (version {stored['version']})")

    finish(work())


@app.command("list")
def list_secrets(as_json: AsJson = False) -> None:
    """List the secrets' names."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        async with desk_for(settings, output.say) as client:
            secrets: list[dict[str, Any]] = await client.get("/api/v1/secrets")
        rows = [(one["name"], str(one["version"]), one["updated_at"][:16]) for one in secrets]
        output.show(
            secrets,
            table(("secret", "version", "set"), rows, empty="no secrets; set one: portside secrets set NAME"),
        )

    finish(work())


@app.command("rm")
def remove(
    names: Annotated[list[str], typer.Argument(metavar="NAME")],
    as_json: AsJson = False,
) -> None:
    """Forget secrets. A job that runs keeps what it was granted until it ends."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        async with desk_for(settings, output.say) as client:
            for name in dict.fromkeys(names):
                await client.delete(_path(name))
        output.show({"removed": names}, "\n".join(f"removed {name}" for name in dict.fromkeys(names)))

    finish(work())


def read_value(name: str) -> str:
    """A value from a terminal, unseen, or all of standard input without its last line break.

    Raises:
        UsageMistake: there is none, or it is no UTF-8 text.
    """
    if sys.stdin.isatty():
        value = getpass.getpass(f"value of {name}: ")
    else:
        raw = sys.stdin.buffer.read(_MAX_INPUT_BYTES)
        try:
            value = raw.decode()
        except UnicodeDecodeError:
            raise UsageMistake("the value is not UTF-8 text; encode it first, with base64 for one") from None
        value = value.removesuffix("\n").removesuffix("\r")
    if not value:
        raise UsageMistake(f"no value came in; try: portside secrets set {name} < FILE")
    return value


def secret_grants(given: list[str]) -> dict[str, str]:
    """`NAME=ENV_VAR` pairs as secret name to environment variable.

    Raises:
        UsageMistake: one is no pair, or a secret is named twice.
    """
    grants: dict[str, str] = {}
    for one in given:
        name, _, env_var = one.partition("=")
        if not name or not env_var:
            raise UsageMistake(f"--secret takes NAME=ENV_VAR: a stored secret's name, not {one[:40]!r}")
        if name in grants:
            raise UsageMistake(f"--secret names {name[:40]!r} twice; a job gets a secret in one variable")
        grants[name] = env_var
    return grants


def _path(name: str) -> str:
    return f"/api/v1/secrets/{quote(name, safe='')}"

"""`portside tools`: the registry as its owner works with it."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from orchestrator.cli.added_tools import as_models_see
from orchestrator.cli.client import OperatorClient
from orchestrator.cli.consent import agreed_to
from orchestrator.cli.failures import FAILED, CommandFailed, UsageMistake
from orchestrator.cli.given_text import read_text
from orchestrator.cli.invocation import AsJson, finish, settings_from_environment
from orchestrator.cli.output import Output
from orchestrator.cli.project_commands import built_project
from orchestrator.cli.session import desk_for
from orchestrator.cli.summary import table
from orchestrator.cli.tool_views import facts_of, row_of, verdict_lines
from orchestrator.cli.visible import one_line, visible
from orchestrator.domain.shaping.family import FAMILIES

app = typer.Typer(name="tools", help="The tool registry.", no_args_is_help=True)
_UNUSABLE = frozenset({"failed_to_load", "needs_schema", "needs_consent"})
_NAME = re.compile("[A-Za-z0-9_.-]+")
MAX_FILE_BYTES = 64 << 20
_CALL_S = 3700.0
_ADD_S = 120.0


@app.command("list")
def list_tools(
    hosted: Annotated[bool, typer.Option("--hosted", help="Only what sandboxed jobs see.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Say why others are hidden.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the tools, with their verdict for sandboxed jobs."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        async with desk_for(settings, output.say, tools=True) as client:
            tools: list[dict[str, Any]] = await client.get("/api/v1/tools")
        # With the reasons asked for, the hidden ones are what one looks for.
        tools = [one for one in tools if one["hosted"] or explain or not hosted]
        output.show(
            tools,
            table(
                ("tool", "source", "hosted", "description"), [row_of(one, explain=explain) for one in tools]
            ),
        )

    finish(work())


@app.command()
def show(name: str, as_json: AsJson = False) -> None:
    """Show a tool: its schema, its policy, who sees it, and how each provider does."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        async with desk_for(settings, output.say, tools=True) as client:
            tool: dict[str, Any] = await client.get(f"/api/v1/tools/{_name(name)}")
            checked: dict[str, Any] = await client.post("/api/v1/tools/check", {"names": [name]})
        verdicts = checked.get(tool["name"], [])
        output.show(
            {**tool, "providers": verdicts},
            *facts_of(tool),
            *(line for one in verdicts for line in verdict_lines("", one)),
        )

    finish(work())


@app.command()
def call(
    name: str,
    params: Annotated[
        str, typer.Argument(help="The arguments as JSON, @FILE, or - for standard input.")
    ] = "{}",
    as_json: AsJson = False,
) -> None:
    """Call a tool by hand; being there to do it is the approval."""
    settings, output = settings_from_environment(), Output(as_json)
    arguments = read_arguments(params)

    async def work() -> int:
        async with desk_for(settings, output.say, tools=True) as client:
            path = f"/api/v1/tools/{_name(name)}/call"
            answer = await client.post(path, {"params": arguments}, timeout_s=_CALL_S)
        result: dict[str, Any] = answer["output"]
        value = result["result"]
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        output.show(result, visible(text))
        return FAILED if result["is_error"] else 0

    finish(work())


@app.command()
def check(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="All when none is given.")] = None,
    provider: Annotated[
        list[str] | None,
        typer.Option(help="openai, openai-strict, anthropic, gemini or generic; all but strict else."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say how each provider will see the tools: each change, each refusal; a refusal is a failure."""
    settings, output = settings_from_environment(), Output(as_json)
    for one in provider or ():
        if one not in FAMILIES:
            raise UsageMistake(f"--provider {one}: there are {', '.join(FAMILIES)}")

    async def work() -> int:
        async with desk_for(settings, output.say, tools=True) as client:
            asked = {"names": names or [], "providers": provider or []}
            found: dict[str, list[dict[str, Any]]] = await client.post("/api/v1/tools/check", asked)
            unusable = await _unusable(client, names or [])
        lines = [
            line for name, verdicts in found.items() for one in verdicts for line in verdict_lines(name, one)
        ]
        lines += [Text(f"{name}: {reason}", style="red") for name, reason in unusable.items()]
        output.show({"tools": found, "unusable": unusable}, *lines)
        refused = any(one["verdict"] == "refused" for verdicts in found.values() for one in verdicts)
        return FAILED if refused or unusable else 0

    finish(work())


@app.command()
def add(
    file: Annotated[
        Path, typer.Argument(metavar="FILE|DIR", help="A component, called as its tool; or a project.")
    ],
    sidecar: Annotated[
        Path | None, typer.Option(help="Its capabilities file, if it is not beside it.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Agree to what it asks for.")] = False,
    as_json: AsJson = False,
) -> None:
    """Take a WASM tool in, or another version of it; says first what it asks for."""
    settings, output = settings_from_environment(), Output(as_json)
    if file.is_dir():
        file = built_project(file).component
    if file.suffix != ".wasm":
        if not file.exists():
            raise UsageMistake(f"{file} is neither a component nor a project: there is nothing")
        raise UsageMistake(f"{file} is not named *.wasm; a WASM tool is called as its file is")
    if not _NAME.fullmatch(file.stem):
        raise UsageMistake(
            f"rename {file.name!r}: a WASM tool is called as its file is, with letters, digits, _, - and ."
        )
    beside = file.with_name(f"{file.stem}.capabilities.json")
    chosen = sidecar or (beside if beside.exists() else None)
    body: dict[str, Any] = {"wasm": _base64(file), "sidecar": _base64(chosen) if chosen else None}

    async def work() -> None:
        async with desk_for(settings, output.say) as client:
            if chosen:
                asks = await client.post("/api/v1/tools/wasm/asks", {"sidecar": body["sidecar"]})
                body["agreed"] = agreed_to(file.stem, asks, output, yes=yes)
            tool: dict[str, Any] = await client.put(
                f"/api/v1/tools/wasm/{_name(file.stem)}", body, timeout_s=_ADD_S
            )
            shown = await as_models_see(client, tool["owner"])
        output.show(tool, *shown)

    finish(work())


@app.command()
def approve(
    name: str,
    yes: Annotated[bool, typer.Option("--yes", help="Agree to what it asks for.")] = False,
    as_json: AsJson = False,
) -> None:
    """Agree to what a WASM tool's changed capabilities file asks for; says first what that is."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        async with desk_for(settings, output.say, tools=True) as client:
            path = f"/api/v1/tools/{_name(name)}"
            tool: dict[str, Any] = await client.get(path)
            agreed_to(name, tool["wants"], output, yes=yes, done="approved")
            tool = await client.post(f"{path}/agree", {"asks": tool["wants"]}, timeout_s=_ADD_S)
        output.show(tool, f"{tool['name']} may {'; '.join(tool['grants']) or 'reach nothing'}")

    finish(work())


@app.command()
def remove(name: str, as_json: AsJson = False) -> None:
    """Remove a WASM tool with its files."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        async with desk_for(settings, output.say, tools=True) as client:
            await client.delete(f"/api/v1/tools/{_name(name)}")
        output.show({"removed": name}, f"removed {name}")

    finish(work())


@app.command()
def disable(name: str, as_json: AsJson = False) -> None:
    """Take a tool away from every caller; it stays so until it is enabled."""
    _switch(name, "disable", as_json)


@app.command()
def enable(name: str, as_json: AsJson = False) -> None:
    """Let callers have a tool again that was disabled."""
    _switch(name, "enable", as_json)


def _switch(name: str, action: str, as_json: bool) -> None:
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        async with desk_for(settings, output.say, tools=True) as client:
            tool: dict[str, Any] = await client.post(f"/api/v1/tools/{_name(name)}/{action}", {})
        seen = "see it" if tool["hosted"] else f"do not see it: {tool['hidden_because']}"
        output.show(tool, f"{tool['name']} is {action}d; sandboxed jobs {one_line(seen, 500)}")

    finish(work())


def read_arguments(given: str) -> dict[str, Any]:
    """A call's arguments from JSON text, `@FILE`, or `-`.

    Raises:
        UsageMistake: they can't be read, or are no JSON object.
    """
    text = given
    if given == "-" or given.startswith("@"):
        text = read_text(Path(given.removeprefix("@")), "the arguments")
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageMistake(f"the arguments are not JSON: {error}") from None
    if not isinstance(value, dict):
        raise UsageMistake('the arguments are not a JSON object; write them like \'{"path": "x"}\'')
    return value  # pyright: ignore[reportUnknownVariableType] - any JSON object will do


async def _unusable(client: OperatorClient, names: list[str]) -> dict[str, str]:
    """Tools that no provider is ever shown, each with the reason."""
    tools: list[dict[str, Any]] = await client.get("/api/v1/tools")
    return {
        one["name"]: one["problem"] or one["reason"] or one["state"]
        for one in tools
        if (one["problem"] or one["state"] in _UNUSABLE) and (not names or one["name"] in names)
    }


def _name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise CommandFailed(f"there is no tool named {name[:80]!r}; see portside tools list")
    return name


def _base64(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            data = opened.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UsageMistake(f"{file} can't be read: {error.strerror}") from None
    if len(data) > MAX_FILE_BYTES:
        raise UsageMistake(
            f"{file} has more than {MAX_FILE_BYTES >> 20} MiB, which is the most; make a component smaller"
            " with 'wasm-tools strip'"
        )
    return base64.b64encode(data).decode()

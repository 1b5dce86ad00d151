"""`portside`: its commands put together, and how each of them ends."""

from __future__ import annotations

import os
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException
from typer.main import get_command

from orchestrator.cli import (
    agent_tokens,
    agents_commands,
    control_commands,
    doctor,
    first_calls,
    image_commands,
    jobs_commands,
    mcp_commands,
    network_commands,
    project_commands,
    representatives_commands,
    run_command,
    secrets_commands,
    serve,
    tools_commands,
)
from orchestrator.cli.failures import FAILED, INTERRUPTED, CommandFailed
from orchestrator.cli.spelling import spell
from orchestrator.cli.visible import visible
from orchestrator.ports.errors import StoreError
from tool_registry.errors import PortsideError

app = typer.Typer(name="portside", no_args_is_help=True, pretty_exceptions_enable=False)
app.command("run")(run_command.run)
app.command("serve")(serve.serve)
jobs_commands.app.command("contract")(first_calls.contract)
tools_commands.app.command("stats")(first_calls.stats)
tools_commands.app.command("new")(project_commands.new)
tools_commands.app.command("build")(project_commands.build)
tools_commands.app.command("test")(project_commands.try_tool)
app.add_typer(jobs_commands.app)
app.add_typer(tools_commands.app)
app.add_typer(mcp_commands.app)
app.add_typer(secrets_commands.app)
for command in (agent_tokens.token, agent_tokens.tokens, agent_tokens.revoke):
    agents_commands.app.command(command.__name__)(command)
app.add_typer(agents_commands.app)
app.add_typer(representatives_commands.app)
for command in (
    control_commands.confirmations,
    control_commands.confirm,
    control_commands.channel,
    control_commands.say,
):
    network_commands.app.command(command.__name__)(command)
app.add_typer(network_commands.app)
app.add_typer(image_commands.app)
app.command("doctor")(doctor.doctor)

_LONGEST_ERROR = 2000


def main() -> None:
    """Run the command line; a message says what went wrong, and the exit code which kind."""
    arguments, debug = without_debug(sys.argv[1:])
    try:
        code = commands().main(args=arguments, prog_name="portside", standalone_mode=False)
    except BrokenPipeError:
        # Whoever read our output has enough. Python would complain once more when it flushes at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = FAILED
    except KeyboardInterrupt:
        code = INTERRUPTED
    except Exception as error:
        if debug:
            raise
        message, code = _told(error)
        if message:
            sys.stderr.write(f"portside: {visible(message)[:_LONGEST_ERROR]}\n")
    sys.exit(code if isinstance(code, int) else 0)


def commands() -> TyperGroup:
    """Every command, as it is typed and as its help shows it."""
    group = get_command(app)
    if not isinstance(group, TyperGroup):
        message = "the command line has no commands"
        raise TypeError(message)
    spell(group)
    return group


def _told(error: Exception) -> tuple[str, int]:
    """An error as a line and an exit code; no line where the help was shown in its place."""
    if isinstance(error, CommandFailed):
        return error.message, error.exit_code
    if isinstance(error, PortsideError | StoreError):
        return str(error), FAILED
    if isinstance(error, TyperException):  # the command line can't be understood
        hint = getattr(getattr(error, "ctx", None), "command_path", "portside")
        message = error.format_message().replace("Value error, ", "", 1)  # typer's library puts it there
        return f"{message} (see: {hint} --help)" if message else "", error.exit_code
    if isinstance(error, typer.Abort):
        return "aborted", FAILED
    return f"something broke inside: {error or type(error).__name__}; --debug shows where", FAILED


def without_debug(arguments: list[str]) -> tuple[list[str], bool]:
    """The arguments without `--debug`; what stands after `--` is another program's."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    kept = [one for one in arguments[:end] if one != "--debug"]
    return kept + arguments[end:], len(kept) < end


def _version(wanted: bool) -> None:
    if wanted:
        try:
            found = version("portside")
        except PackageNotFoundError:
            found = "(run from its sources)"
        sys.stdout.write(f"portside {found}\n")
        raise typer.Exit


@app.callback()
def portside(
    _show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Coding agents in sealed containers; tools, secrets and models stay portside.

    Any command takes --debug: what breaks is shown with its traceback.
    """


if __name__ == "__main__":
    main()

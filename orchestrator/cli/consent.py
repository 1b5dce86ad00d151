"""A person agrees to what a WASM tool asks for, or it is not added."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer

from orchestrator.cli.failures import CommandFailed
from orchestrator.cli.output import Output
from orchestrator.cli.visible import one_line


def agreed_to(name: str, asks: Sequence[str], output: Output, *, yes: bool, done: str = "added") -> bool:
    """Show what is asked for and have it agreed to; nothing asked needs no answer.

    Raises:
        CommandFailed: it was not agreed to.
    """
    if not asks:
        return True
    output.say(f"{name} asks to")
    for line in asks:
        output.say(f"  - {one_line(line, 500)}")
    if yes:
        return True
    if not sys.stdin.isatty():
        raise CommandFailed(f"{name} was not {done}: nobody is there to agree; read the list, then add --yes")
    if not typer.confirm("Grant it all of this?", err=True):
        raise CommandFailed(f"{name} was not {done}")
    return True

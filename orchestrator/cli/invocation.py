"""What every command does alike: read its settings, run its work, end with its exit code."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from orchestrator.cli.failures import UsageMistake
from orchestrator.settings import Settings

AsJson = Annotated[bool, typer.Option("--json", help="Write JSON for programs.")]


def settings_from_environment() -> Settings:
    """The settings.

    Raises:
        UsageMistake: a variable can't be used; the message names it.
    """
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = "_".join(str(part) for part in first["loc"]).upper()
        if not name.endswith("_API_KEY"):
            name = f"PORTSIDE_{name}"
        raise UsageMistake(f"{name}: {first['msg']}") from None


def finish(work: Coroutine[Any, Any, int | None]) -> None:
    """Run a command's work; its exit code is the process's."""
    code = asyncio.run(work)
    if code:
        raise typer.Exit(code)

"""`portside doctor`: is everything there that a job needs, and does it hold?"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from container.engine.errors import EngineError
from orchestrator.cli.failures import FAILED, CommandFailed
from orchestrator.cli.invocation import AsJson, finish, settings_from_environment
from orchestrator.cli.output import Output
from orchestrator.cli.session import logging_to
from orchestrator.cli.visible import one_line
from orchestrator.settings import Settings

if TYPE_CHECKING:
    from orchestrator.diagnosis import Finding

_STYLES = {"good": "green", "note": "yellow", "bad": "bold red"}


def doctor(
    fix: Annotated[bool, typer.Option("--fix", help="Get an engine and the image first, as root.")] = False,
    as_json: AsJson = False,
) -> None:
    """Try every part for real, and say what to do about what fails."""
    settings, output = settings_from_environment(), Output(as_json)
    finish(_doctor(settings, output, fix=fix))


async def _doctor(settings: Settings, output: Output, *, fix: bool) -> int:
    from orchestrator import diagnosis  # imports every part

    findings: list[dict[str, Any]] = []
    with logging_to(settings.home / "portside.log"):
        if fix:
            try:
                await diagnosis.repair(settings, output.say)
            except EngineError as error:
                raise CommandFailed(error.message) from error
        async for finding in diagnosis.diagnose(settings):
            findings.append(asdict(finding))
            if not output.as_json:
                output.console.print(_line(finding), highlight=False)
    good = all(one["verdict"] != "bad" for one in findings)
    if output.as_json:
        output.json({"good": good, "findings": findings})
    return 0 if good else FAILED


def _line(finding: Finding) -> Text:
    line = Text(f"{finding.verdict:<5}", style=_STYLES[finding.verdict])
    line.append(f"{finding.check:<13} ", style="bold")
    line.append(one_line(finding.detail, 1000), style="default")
    return line.append(f"\n     {'fix':<13} {finding.fix}", style="yellow") if finding.fix else line

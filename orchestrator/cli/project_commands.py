"""`portside tools new`, `build` and `test`: WASM tools as their authors work on them."""

from __future__ import annotations

import json
import shlex
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from orchestrator.cli.failures import FAILED, CommandFailed, UsageMistake
from orchestrator.cli.invocation import AsJson, finish, settings_from_environment
from orchestrator.cli.output import Output
from orchestrator.cli.visible import one_line, visible
from orchestrator.settings import Settings

if TYPE_CHECKING:
    from orchestrator.wiring.tool_projects import Built, Project, Shop, Tried

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The project; else the present directory.")]
_HERE = Path()


def new(
    name: Annotated[str, typer.Argument(help="Models will call the tool by it.")],
    lang: Annotated[str, typer.Option(help="python, javascript, rust or c.")],
    directory: Annotated[Path | None, typer.Option("--dir", help="Where to; else a directory NAME.")] = None,
    as_json: AsJson = False,
) -> None:
    """Begin a WASM tool: a small project that can be built, with a tool that works."""
    from orchestrator.wiring.tool_projects import BadProject, installing, new_project  # takes a second

    output = Output(as_json)
    try:
        project = new_project(name, lang, directory or Path(name))
    except BadProject as error:
        raise UsageMistake(error.message) from None
    files = sorted(str(path.relative_to(project.directory)) for path in project.directory.rglob("*.*"))
    where = shlex.quote(str(directory or name))
    install = installing(project)
    first = f"{install} && " if install else ""
    output.show(
        {"name": name, "directory": str(project.directory), "files": files, "install": install},
        f"{name} begins in {where}: {', '.join(files)}",
        f"next: {first}portside tools build {where}",
    )


def build(directory: Directory = _HERE, as_json: AsJson = False) -> None:
    """Build a WASM tool, and check that it can be one."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> None:
        async with _shop(settings, output) as shop:
            project = _project(directory)
            output.say(f"building {project.name} ({project.language})")
            built = await shop.build(project)
        where = shlex.quote(str(directory))
        output.show(
            _told(project, built),
            *_shown(project, built),
            f"next: portside tools test {where}, then: portside tools add {where}",
        )

    finish(work())


def try_tool(directory: Directory = _HERE, as_json: AsJson = False) -> None:
    """Run a WASM tool's cases in the sandbox that jobs get; builds it first if its sources changed."""
    settings, output = settings_from_environment(), Output(as_json)

    async def work() -> int:
        async with _shop(settings, output) as shop:
            project = _project(directory)
            if not project.is_built():
                output.say(f"building {project.name} ({project.language})")
                await shop.build(project)
            tried = await shop.try_cases(project)
        good = sum(not one.wrong for one in tried)
        output.show(
            {"name": project.name, "passed": good, "cases": [_case(one) for one in tried]},
            *(line for one in tried for line in _verdict(one)),
            Text(f"{good} of {len(tried)} cases are as expected", style=_style(good == len(tried))),
        )
        return 0 if good == len(tried) else FAILED

    finish(work())


def built_project(directory: Path) -> Project:
    """A project whose component is made of its present sources.

    Raises:
        CommandFailed: it is not, or there is no project; the message says what to do.
    """
    project = _project(directory)
    if not project.is_built():
        where = shlex.quote(str(directory))
        found = (
            "its sources changed since its last build" if project.component.exists() else "it is not built"
        )
        raise CommandFailed(f"{project.name} can't be added: {found}; type: portside tools build {where}")
    return project


def _project(directory: Path) -> Project:
    from orchestrator.wiring.tool_projects import BadProject, read_project  # takes a second

    try:
        return read_project(directory)
    except BadProject as error:
        raise CommandFailed(error.message) from None


@asynccontextmanager
async def _shop(settings: Settings, output: Output) -> AsyncGenerator[Shop]:
    from orchestrator.wiring.tool_projects import BuildFailed, ProjectError, open_shop  # takes a second

    try:
        async with open_shop(settings) as shop:
            yield shop
    except BuildFailed as error:
        if error.output:
            output.errors.print(visible(error.output), markup=False, highlight=False)
        raise CommandFailed(error.message) from None
    except (ProjectError, OSError) as error:
        raise CommandFailed(str(error)) from None


def _told(project: Project, built: Built) -> dict[str, Any]:
    tools = [one.tool.definition for one in (built.offer, *built.offer.also)]
    return {
        "file": str(project.component),
        "bytes": project.component.stat().st_size,
        "tools": [
            {"name": one.name, "description": one.description, "parameters": one.parameters} for one in tools
        ],
        "output": built.output,
    }


def _shown(project: Project, built: Built) -> Iterator[RenderableType]:
    told = _told(project, built)
    yield Text(f"built {told['file']}, {told['bytes']:,} bytes", style="green")
    for tool in told["tools"]:
        yield f"{tool['name']}: {one_line(tool['description'], 500)}"
        yield f"  {visible(json.dumps(tool['parameters'], ensure_ascii=False))[:2_000]}"


def _case(tried: Tried) -> dict[str, Any]:
    return {
        "name": tried.case.name,
        "params": tried.case.params,
        "passed": not tried.wrong,
        "wrong": tried.wrong,
        "got": tried.got,
        "is_error": tried.is_error,
        "duration_ms": tried.duration_ms,
    }


def _verdict(tried: Tried) -> Iterator[RenderableType]:
    about = one_line(tried.case.name or json.dumps(tried.case.params, ensure_ascii=False), 100)
    word = "wrong" if tried.wrong else "good"
    yield Text(f"{word:<6} {about} ({tried.duration_ms} ms)", style=_style(not tried.wrong))
    if tried.wrong:
        yield f"       {one_line(tried.wrong, 1000)}"
        yield f"       got {'the error ' if tried.is_error else ''}{one_line(tried.got, 1000)}"


def _style(good: bool) -> str:
    return "green" if good else "red"

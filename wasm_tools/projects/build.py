"""From a project's sources to a component that can be a tool."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tool_registry.registry import Offer, ToolRegistry
from tool_registry.visibility import ToolState
from wasm_tools.loading import load_wasm_tool
from wasm_tools.projects.errors import BadProject, BuildFailed, UnfitTool
from wasm_tools.projects.project import RECIPE, Project
from wasm_tools.projects.toolchain import build_environment
from wasm_tools.runtime import WasmRuntime
from wasm_tools.sidecar import sidecar_path

_MOST_S = 600.0
_LAST_WORDS_S = 2.0
_KEPT_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Built:
    """A build that went well.

    Attributes:
        offer: the tool or tools, as the registry will take them.
        output: the end of what the recipe wrote.
    """

    offer: Offer
    output: str


async def build(project: Project, runtime: WasmRuntime, *, within_s: float = _MOST_S) -> Built:
    """Run the recipe and check what it made; only a component that can be a tool replaces the last one.

    Raises:
        ToolchainMissing: as `build_environment`.
        BadProject: there is no recipe, or the directory can't be written.
        BuildFailed: the recipe failed, or took too long.
        UnfitTool: it made what can't be a tool.
    """
    environment = await asyncio.to_thread(build_environment, project)
    digest = await asyncio.to_thread(project.digest)
    made = project.workbench / "made" / project.component.name
    await asyncio.to_thread(_clear, project, made)
    output = await _run(project, made, environment, within_s)
    if not made.is_file():
        raise BuildFailed(
            f"{project.recipe} wrote no {made}, which it is given as its first argument", output
        )
    if project.sidecar.exists():
        await asyncio.to_thread(shutil.copy, project.sidecar, sidecar_path(made))
    checked(await load_wasm_tool(made, runtime))
    await asyncio.to_thread(_keep, project, made, digest)
    return Built(await load(project, runtime), output)


async def load(project: Project, runtime: WasmRuntime) -> Offer:
    """The tool of the last build under the sidecar as it is now.

    Raises:
        UnfitTool: it can't be one.
    """
    return checked(await load_wasm_tool(project.component, runtime))


def checked(offer: Offer) -> Offer:
    """The same, if a registry will take it and show it to models.

    Raises:
        UnfitTool: the message says why not.
    """
    if offer.state is not ToolState.ACTIVE:
        raise UnfitTool(offer.reason)
    refused = ToolRegistry().replace(offer.tool.traits.owner, [offer]).refused
    if refused:
        raise UnfitTool(refused[0].error.message)
    return offer


def _clear(project: Project, made: Path) -> None:
    if not project.recipe.is_file():
        raise BadProject(f"{project.directory} has no {RECIPE}, which makes the component of its sources")
    shutil.rmtree(made.parent, ignore_errors=True)
    with _writable(project):
        made.parent.mkdir(parents=True)


def _keep(project: Project, made: Path, digest: str) -> None:
    with _writable(project):
        made.replace(project.component)
        project.stamp(digest)


@contextmanager
def _writable(project: Project) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise BadProject(f"{project.directory} can't be written: {error.strerror}") from None


async def _run(project: Project, made: Path, environment: Mapping[str, str], within_s: float) -> str:
    """What the recipe wrote; the end of it, when that is much."""
    process = await asyncio.create_subprocess_exec(
        *("sh", str(project.recipe), str(made)),
        cwd=project.directory,
        env=environment,
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=STDOUT,
        start_new_session=True,
    )
    output = bytearray()
    assert process.stdout is not None
    try:
        async with asyncio.timeout(within_s):
            while piece := await process.stdout.read(_KEPT_BYTES):
                output += piece
                del output[:-_KEPT_BYTES]
            code = await process.wait()
    except TimeoutError:
        raise BuildFailed(f"the build was ended after {within_s:g} s", _text(output)) from None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # also what the recipe left behind
        await _collect(process)
    if code != 0:
        raise BuildFailed(f"the build of {project.name} failed: {RECIPE} ended with {code}", _text(output))
    return _text(output)


async def _collect(process: Process) -> None:
    """Its exit, and the end of its pipe, unless something that left its session holds that open."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_LAST_WORDS_S):
            await process.communicate()


def _text(output: bytes | bytearray) -> str:
    return output.decode("utf-8", "replace").strip()

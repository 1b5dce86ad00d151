"""Projects of WASM tools, on the runtime and the cache that an orchestrator of the same home uses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from orchestrator.home import prepare_home
from orchestrator.settings import Settings
from wasm_tools.projects.build import Built, build, load
from wasm_tools.projects.cases import read_cases
from wasm_tools.projects.errors import BadProject, BuildFailed, ProjectError, ToolchainMissing
from wasm_tools.projects.project import CASES, LANGUAGES, Project, read_project
from wasm_tools.projects.scaffold import new_project
from wasm_tools.projects.toolchain import build_environment
from wasm_tools.projects.trial import TrialClock, Tried, try_cases
from wasm_tools.runtime import WasmRuntime
from worker.clock import SystemClock

__all__ = [
    "LANGUAGES",
    "BadProject",
    "BuildFailed",
    "Built",
    "Project",
    "ProjectError",
    "Shop",
    "Tried",
    "installing",
    "new_project",
    "open_shop",
    "read_project",
]


def installing(project: Project) -> str:
    """The command that installs what a project's build needs; "" when all is here."""
    try:
        build_environment(project)
    except ToolchainMissing as error:
        return error.command
    return ""


@dataclass(frozen=True, slots=True)
class Shop:
    """Builds and tries projects; needs no orchestrator."""

    runtime: WasmRuntime
    clock: TrialClock

    async def build(self, project: Project) -> Built:
        """As `wasm_tools.projects.build.build`."""
        return await build(project, self.runtime)

    async def load(self, project: Project) -> Built:
        """The last build, under the sidecar as it is now.

        Raises:
            ProjectError: it can't be a tool.
        """
        return Built(await load(project, self.runtime), "")

    async def try_cases(self, project: Project) -> list[Tried]:
        """Run the project's cases.

        Raises:
            ProjectError: the cases, the component or its sidecar can't be used.
        """
        cases = await asyncio.to_thread(read_cases, project.directory / CASES)
        return [tried async for tried in try_cases(project, cases, self.runtime, self.clock)]


@asynccontextmanager
async def open_shop(settings: Settings) -> AsyncGenerator[Shop]:
    """A place to build and try projects in, for as long as the context lasts."""
    from orchestrator.wiring.base import open_wasm  # with all that a database needs; takes a second

    await asyncio.to_thread(prepare_home, settings.home)
    clock = TrialClock(SystemClock())
    runtime = await open_wasm(settings, clock)
    try:
        yield Shop(runtime, clock)
    finally:
        await runtime.close()

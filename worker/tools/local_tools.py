"""The five tools that run beside the agent's files."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tool_registry.clock import Clock
from tool_registry.tool import Tool
from worker.tools.apply_patch import ApplyPatch
from worker.tools.background_jobs import BackgroundJobs
from worker.tools.environment import child_environment
from worker.tools.list_dir import ListDir
from worker.tools.read_file import ReadFile
from worker.tools.shell import Launch, Shell
from worker.tools.workspace_paths import Workspace
from worker.tools.write_file import WriteFile

OUTPUT_DIR = Path("/tmp/portside/out")  # noqa: S108 - the one place that read_file may read beside the workspace


@dataclass(frozen=True, slots=True)
class LocalTools:
    """The tools, and the commands that run in the background.

    Attributes:
        tools: shell, read_file, write_file, list_dir and apply_patch.
        jobs: commands that were asked to outlive their calls.
    """

    tools: tuple[Tool, ...]
    jobs: BackgroundJobs

    async def close(self) -> None:
        """End every process that the job's commands started."""
        await self.jobs.close()


def local_tools(
    workspace: Path,
    *,
    credentials: Mapping[str, str],
    clock: Clock,
    output_dir: Path = OUTPUT_DIR,
    inherited: Mapping[str, str] | None = None,
    python: Sequence[str] | None = None,
    refusals: Callable[[], list[str]] = list[str],
) -> LocalTools:
    """Make the five tools for one job.

    Args:
        workspace: the directory that the tools are bound to.
        credentials: environment variables granted to the job; only commands see them.
        clock: measures how long commands take.
        output_dir: long outputs go there; `read_file` may read it.
        inherited: where the allowed environment variables come from; this process's by default.
        python: how a Python interpreter is started; this one by default.
        refusals: why commands were refused connections, since it was asked last.
    """
    bounds = Workspace(workspace, readable=(output_dir,))
    jobs = BackgroundJobs()
    launch = Launch(
        environment=child_environment(os.environ if inherited is None else inherited, credentials),
        python=tuple(python or (sys.executable,)),
        output_dir=output_dir,
        refusals=refusals,
    )
    return LocalTools(
        (
            Shell(bounds, launch, jobs, clock),
            ReadFile(bounds),
            WriteFile(bounds),
            ListDir(bounds),
            ApplyPatch(bounds),
        ),
        jobs,
    )

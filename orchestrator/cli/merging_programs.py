"""How a patch and a checkout are merged: by this machine's git, or by the worker image's in a container."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from container.engine.errors import EngineError
from orchestrator.cli.failures import CommandFailed
from orchestrator.services.sealed_programs import Program, SealedPrograms
from orchestrator.settings import Settings

MODULE = "worker.merging"
RESULT = "result.tar"
_MAX_RESULT_BYTES = 2 * 1024**3
_LABEL = "io.portside.apply"
_OLDEST_GIT = (2, 38)  # has `merge-tree --write-tree`


class MergingPrograms(Protocol):
    """Runs `worker.merging`."""

    async def run(self, what: str, given: Path, out: Path) -> Any:
        """The JSON that it printed; what it made lies in `out`.

        Raises:
            CommandFailed: it failed, with its last words.
        """
        ...


class HostPrograms:
    """With the git of this machine."""

    async def run(self, what: str, given: Path, out: Path) -> Any:
        """As a process of its own."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            MODULE,
            what,
            str(given),
            str(out),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            stdin=asyncio.subprocess.DEVNULL,
        )
        printed, errors = await process.communicate()
        if process.returncode != 0:
            last = errors.decode("utf-8", "replace").strip().splitlines()[-1:] or ["it said nothing"]
            raise CommandFailed(f"the patch can't be used; nothing was changed: {last[0][:1000]}")
        return json.loads(printed)


class SealedMerging:
    """With the worker image's git, in a container without network. It sees copies only."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def run(self, what: str, given: Path, out: Path) -> Any:
        """In a container of its own, on the engine that jobs run on."""
        from orchestrator.wiring import engines  # takes a second; most machines have git

        try:
            engine = await engines.open_engine(self._settings)
        except EngineError as error:
            raise CommandFailed(
                "git 2.38 or newer is not installed, and there is no container engine to do without: "
                f"{error.message}. Install git, or save the patch with: portside jobs diff"
            ) from None
        try:
            programs = SealedPrograms(engine, engines.starts_of(self._settings, engine).start_in)
            labels = {_LABEL: str(self._settings.home)[-60:]}
            program = Program(f"portside-apply-{uuid4().hex[:12]}", MODULE, labels, given, (what,))
            async with programs.run(program) as (ref, said):
                if what == "merge" and said["outcome"] in {"fits", "merged"}:
                    await programs.fetch(ref, RESULT, out / RESULT, most=_MAX_RESULT_BYTES)
        except EngineError as error:
            raise CommandFailed(f"the patch can't be used; nothing was changed: {error.message}") from None
        finally:
            await engine.close()
        return said


async def merging_programs(settings: Settings) -> MergingPrograms:
    """Git's own way where git is new enough, else a container."""
    return HostPrograms() if await _git_will_do() else SealedMerging(settings)


async def _git_will_do() -> bool:
    git = shutil.which("git")
    if git is None:
        return False
    asked = await asyncio.create_subprocess_exec(
        git, "--version", stdout=asyncio.subprocess.PIPE, stdin=asyncio.subprocess.DEVNULL, cwd=os.sep
    )
    said, _ = await asked.communicate()
    found = re.search(rb"(\d+)\.(\d+)", said)
    return found is not None and (int(found[1]), int(found[2])) >= _OLDEST_GIT

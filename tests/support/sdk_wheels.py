"""The providers' Python SDKs as wheels for the worker image's Python, to be sent along with a workspace."""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import requires, version
from pathlib import Path

import pytest

from container.adapters.docker.engine import DockerEngine
from tests.support.command_line import ROOT
from tests.support.docker_engine import missing
from tests.support.sandboxes import Sandboxes

SDKS = ("openai", "anthropic")
_NAME = re.compile(r"[A-Za-z0-9._-]+")


@pytest.fixture(scope="session")
def sdk_wheels(docker_engine: DockerEngine, worker_image: str) -> Path:
    """A directory of wheels: both SDKs, and what they need beyond the image's own libraries."""
    python = asyncio.run(_python_of(docker_engine, worker_image))
    wanted = [f"{name}=={version(name)}" for name in sorted(_closure(SDKS) - _in_image())]
    name = f"portside-test-sdks-{os.getuid()}-py{python}-{version('openai')}-{version('anthropic')}"
    directory = Path(tempfile.gettempdir()) / name
    with directory.with_suffix(".lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not directory.is_dir():
            _fetch(wanted, python, directory)
    return directory


async def _python_of(engine: DockerEngine, image: str) -> str:
    sandboxes = Sandboxes(engine, image)
    try:
        _, said = await sandboxes.python("import sys; print('%d.%d' % sys.version_info[:2])")
    finally:
        await sandboxes.remove_all()
    return said.strip()


def _closure(names: tuple[str, ...]) -> set[str]:
    """The packages and all that they need, without their extras."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        for line in requires(name) or ():
            if "extra ==" not in line and "sys_platform ==" not in line and "python_version <" not in line:
                needed = _NAME.match(line)
                assert needed is not None
                waiting.append(needed[0].lower().replace("_", "-"))
    return found


def _in_image() -> set[str]:
    lock = (ROOT / "requirements-worker.lock").read_text()
    return {line.partition("==")[0] for line in lock.splitlines() if re.match(r"[a-z0-9]", line)}


def _fetch(wanted: list[str], python: str, directory: Path) -> None:
    part = directory.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"),
            *("--python-version", python, "--dest", str(part)),
            *wanted,
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    if done.returncode != 0:
        missing(f"the SDKs' wheels could not be fetched: {done.stderr.strip()[-500:]}")
    part.rename(directory)

"""Projects of tools for tests: written, and ready to be built in any language.

Load with `pytest_plugins = ["tests.support.wasm.projects"]`, or from `tests/conftest.py`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.docker_engine import missing
from tests.support.wasm.guests import REPOSITORY
from wasm_tools.projects.errors import ToolchainMissing
from wasm_tools.projects.project import Language, Project
from wasm_tools.projects.scaffold import new_project
from wasm_tools.projects.toolchain import build_environment

_JAVASCRIPT = REPOSITORY / "wasm_tools" / "scaffolds" / "javascript"
NewProject = Callable[[Language], Project]


def node_modules() -> Path:
    """What builds tools in JavaScript, installed once for its lock file."""
    npm = shutil.which("npm")
    if npm is None:
        missing("npm is not here (Debian: npm)")
    files = [_JAVASCRIPT / "package.json", _JAVASCRIPT / "package-lock.json"]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / f"portside-test-componentize-qjs-{os.getuid()}-{digest}"
    with folder.with_suffix(".lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            folder.mkdir(exist_ok=True)
            for file in files:
                shutil.copy(file, folder)
            quiet = ("--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
            done = subprocess.run(
                [npm, "ci", *quiet], cwd=folder, capture_output=True, text=True, check=False
            )
            if done.returncode != 0:
                missing(f"npm could not install componentize-qjs: {done.stderr.strip()[-500:]}")
            (folder / "complete").touch()
    return folder / "node_modules"


@pytest.fixture
def new_tool(tmp_path: Path) -> NewProject:
    """Writes a new project whose toolchain is here; without it tests fail under CI and are skipped elsewhere."""

    def written(language: Language) -> Project:
        project = new_project("days", language, tmp_path / "days")
        if language == "javascript":
            (project.directory / "node_modules").symlink_to(node_modules())
        try:
            build_environment(project)
        except ToolchainMissing as error:
            missing(error.message)
        return project

    return written

"""Programs from npm, installed once into a cache directory.

Load with `pytest_plugins = ["tests.support.npm"]`, or from `tests/conftest.py`.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.support.docker_engine import missing

INSPECTOR = "@modelcontextprotocol/inspector-cli"
_INSPECTOR_VERSION = "0.17.0"


@pytest.fixture(scope="session")
def mcp_inspector() -> str:
    """The MCP project's own inspector, as a command."""
    return str(_installed(INSPECTOR, _INSPECTOR_VERSION) / "mcp-inspector-cli")


def _installed(package: str, version: str) -> Path:
    """The directory of a package's commands."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        missing("Node.js is not here")
    name = f"portside-test-npm-{os.getuid()}-{package.rpartition('/')[2]}-{version}"
    directory = Path(tempfile.gettempdir()) / name
    with directory.with_suffix(".lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        commands = directory / "node_modules" / ".bin"
        if not commands.is_dir():
            _install(npm, f"{package}@{version}", directory)
    return commands


def _install(npm: str, package: str, directory: Path) -> None:
    directory.mkdir(exist_ok=True)
    quiet = ("--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
    done = subprocess.run(
        [npm, "install", *quiet, "--prefix", str(directory), package],
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    if done.returncode != 0:
        shutil.rmtree(directory / "node_modules", ignore_errors=True)
        missing(f"npm could not install {package}: {done.stderr.strip()[-500:]}")

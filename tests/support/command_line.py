"""The command line as its user starts it: a process of its own, with a home of its own."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest

from orchestrator.services.launching import LABEL_INSTANCE
from tests.support.homes import remove_sockets
from tests.support.patient_engine import patient_engine

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    exit_code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Standard output as a JSON stream."""
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass(frozen=True)
class CommandLine:
    """Starts `portside` with one home.

    Attributes:
        home: PORTSIDE_HOME.
        environment: what the command sees beside PATH and its home.
        through: a command that starts the command, such as one that becomes another user first.
    """

    home: Path
    environment: Mapping[str, str]
    through: tuple[str, ...] = ()

    def run(self, *arguments: str, timeout_s: float = 100.0, stdin: str | None = None) -> Ran:
        """Run a command to its end; `stdin` is what it can read, nothing unless given."""
        done = subprocess.run(
            [*self.through, sys.executable, "-m", "orchestrator.cli.main", *arguments],
            input=stdin or "",
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            cwd=ROOT,
            env=self._environment(),
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def start(self, *arguments: str, log: Path | None = None) -> subprocess.Popen[str]:
        """Start a command and leave it running; its standard error can go to a file, for many lines of it."""
        with log.open("a") if log else nullcontext() as errors:
            return self._start(arguments, subprocess.PIPE if errors is None else errors)

    def _start(self, arguments: tuple[str, ...], errors: int | IO[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "orchestrator.cli.main", *arguments],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=ROOT,
            env=self._environment(),
        )

    def start_at_terminal(self, terminal: int, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a command whose terminal is this one."""
        take_terminal = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
        return subprocess.Popen(
            [
                sys.executable,
                "-c",
                take_terminal + "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])",
                "-m",
                "orchestrator.cli.main",
                *arguments,
            ],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            cwd=ROOT,
            env={**self._environment(), "COLUMNS": "200", "TERM": "dumb"},
            start_new_session=True,
        )

    def add_mcp(self, name: str, *command: str) -> None:
        """Configure an MCP server before the orchestrator starts."""
        entry = {"command": command[0], "args": list(command[1:])}
        self.home.mkdir(exist_ok=True, mode=0o700)
        (self.home / "mcp.json").write_text(json.dumps({"mcpServers": {name: entry}}))

    def add_wasm(self, file: Path) -> None:
        """Put a WASM tool where the orchestrator looks for them."""
        (self.home / "tools").mkdir(parents=True, exist_ok=True, mode=0o700)
        (self.home / "tools" / file.name).write_bytes(file.read_bytes())

    def containers(self, label: str = "") -> list[str]:
        """The names of the containers, in any state, that are this home's; another label names this home too."""

        async def look() -> list[str]:
            engine = patient_engine(self.environment["PORTSIDE_ENGINE_URL"])
            labels = {LABEL_INSTANCE: (self.home / "instance-id").read_text().strip()}
            if label:
                labels = {label: str(self.home)[-60:]}
            try:
                return [status.ref.name for status in await engine.list(labels)]
            finally:
                await engine.close()

        return asyncio.run(look())

    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        return {**kept, "PORTSIDE_HOME": str(self.home), **self.environment}


@pytest.fixture
def command_line(tmp_path: Path, docker_endpoint: str, worker_image: str) -> Iterator[CommandLine]:
    """A command line whose jobs run in real containers of the worker image."""
    environment = {"PORTSIDE_ENGINE_URL": docker_endpoint, "PORTSIDE_IMAGE": worker_image}
    home = tmp_path / "home"
    yield CommandLine(home, environment)
    remove_sockets(home)

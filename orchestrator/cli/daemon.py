"""An orchestrator that stays when the command ends: `portside serve` in a session of its own."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from orchestrator.cli.failures import CommandFailed
from orchestrator.cli.session import Needs, Say, make_ready, running
from orchestrator.settings import Settings

_START_S = 60.0
_POLL_S = 0.1
_SOURCES = Path(__file__).resolve().parents[2]


async def start_daemon(settings: Settings, say: Say, needs: Needs) -> str:
    """Start it and wait until it answers.

    Returns:
        What a person types to end it.

    Raises:
        CommandFailed: it can't be started, or did not come up.
    """
    await make_ready(settings, say, needs)  # whatever takes long or fails is told here, not in a log
    log = settings.home / "portside.log"
    say(f"starting an orchestrator that stays; its log is {log}")
    process = _spawn(log)
    deadline_s = asyncio.get_running_loop().time() + _START_S
    while not await running(settings):
        if process.poll() is not None:
            raise CommandFailed(f"the orchestrator ended at once; see the end of {log}")
        if asyncio.get_running_loop().time() > deadline_s:
            process.terminate()
            raise CommandFailed(f"the orchestrator did not answer within {_START_S:g} s; see {log}")
        await asyncio.sleep(_POLL_S)
    return f"kill {process.pid}"


def _spawn(log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as stream:
        return subprocess.Popen(
            [sys.executable, "-m", "orchestrator.cli.main", "serve"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stream,
            env={**os.environ, "PYTHONPATH": _with_sources()},
            start_new_session=True,
        )


def _with_sources() -> str:
    return os.pathsep.join(filter(None, (str(_SOURCES), os.environ.get("PYTHONPATH"))))

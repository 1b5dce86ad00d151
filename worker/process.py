"""The worker as a process: settings, hardening, one job."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tool_registry.errors import PortsideError
from worker.clock import SystemClock
from worker.hardening import HardeningFailed, harden
from worker.run import Granted, HostedWorker, LocalTools, run_until_done
from worker.settings import SettingsError, read_settings
from worker.tools.local_tools import local_tools


def _local_tools(workspace: Path, granted: Granted, output_dir: Path) -> LocalTools:
    return local_tools(
        workspace,
        credentials=granted.environment,
        clock=SystemClock(),
        output_dir=output_dir,
        refusals=granted.refusals,
    )


def run_process(argv: Sequence[str]) -> int:
    """Run a job to its end; answers the exit code."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    try:
        settings = read_settings(argv, os.environ)
        harden()
        worker = HostedWorker(settings, _local_tools, SystemClock())
        return asyncio.run(run_until_done(worker))
    except (SettingsError, HardeningFailed, PortsideError, OSError, ValueError) as error:
        print(f"worker: {error}", file=sys.stderr)  # noqa: T201 - the container's log
        return 1

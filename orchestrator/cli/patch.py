"""A job's patch on the user's own checkout: checked first, applied whole or not at all."""

from __future__ import annotations

import subprocess
from pathlib import Path

from orchestrator.cli.failures import CommandFailed


def apply_patch(patch: bytes, directory: Path) -> None:
    """Apply a patch below a directory.

    Raises:
        CommandFailed: it does not apply cleanly, or git is not there; nothing was changed.
    """
    if not patch.strip():
        return
    _git(directory, patch, "--check")
    _git(directory, patch)


def _git(directory: Path, patch: bytes, *options: str) -> None:
    command = ["git", "apply", "--whitespace=nowarn", *options, "-"]
    # The patch's paths are relative to the workspace; inside a larger repository git would take them from its top.
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "GIT_CEILING_DIRECTORIES": str(directory.parent)}
    try:
        done = subprocess.run(
            command, input=patch, capture_output=True, cwd=directory, check=False, env=environment
        )
    except FileNotFoundError:
        raise CommandFailed(
            "git is not installed; install it, or save the patch with: portside jobs diff"
        ) from None
    if done.returncode != 0:
        words = done.stderr.decode("utf-8", "replace").strip()[:1000]
        raise CommandFailed(f"the patch does not apply to {directory}; nothing was changed: {words}")

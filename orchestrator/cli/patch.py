"""A job's patch on the user's own checkout: checked first, applied whole or not at all."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from orchestrator.cli.failures import CommandFailed, UsageMistake
from orchestrator.cli.visible import one_line

_OPTIONS = ("--whitespace=nowarn",)


def apply_patch(patch: bytes, directory: Path) -> None:
    """Apply a patch below a directory.

    Raises:
        UsageMistake: the directory is none.
        CommandFailed: it does not apply cleanly, or git is not there; nothing was changed.
    """
    if not patch.strip():
        return
    if not directory.is_dir():
        raise UsageMistake(f"{directory} is not a directory; name the workspace with --workspace")
    with tempfile.TemporaryDirectory(prefix="portside-") as empty:
        # The patch's paths are relative to the workspace. In a larger repository git would take them from
        # its top, and another user's checkout it would not enter at all: it is given a repository of its own.
        place = (f"--git-dir={empty}", f"--work-tree={directory}")
        _git(directory, b"", "init", "--quiet", "--bare", empty)
        _git(directory, patch, *place, "apply", *_OPTIONS, "--check", "-")
        _git(directory, patch, *place, "apply", *_OPTIONS, "-")


def _git(directory: Path, patch: bytes, *arguments: str) -> None:
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1"}
    try:
        done = subprocess.run(
            ["git", *arguments],
            input=patch,
            capture_output=True,
            cwd=directory,
            check=False,
            env=environment,
        )
    except FileNotFoundError:
        raise CommandFailed(
            "git is not installed; install it, or save the patch with: portside jobs diff"
        ) from None
    if done.returncode != 0:
        words = one_line(done.stderr.decode("utf-8", "replace"), 1000)
        raise CommandFailed(f"the patch does not apply to {directory}; nothing was changed: {words}")

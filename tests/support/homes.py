"""What a home leaves outside of itself."""

from __future__ import annotations

import shutil
from pathlib import Path

from orchestrator.home import socket_root


def remove_sockets(home: Path) -> None:
    """Remove the directories of its jobs' sockets and its id's lock, which stay for the next orchestrator."""
    instance = home / "instance-id"
    if instance.exists():
        root = socket_root(instance.read_text())
        shutil.rmtree(root, ignore_errors=True)
        root.with_name(f"{root.name}.lock").unlink(missing_ok=True)

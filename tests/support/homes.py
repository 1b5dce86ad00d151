"""What a home leaves outside of itself."""

from __future__ import annotations

import shutil
from pathlib import Path

from orchestrator.home import socket_root


def remove_sockets(home: Path) -> None:
    """Remove the directories of its jobs' sockets, which a closed orchestrator leaves to the next one."""
    instance = home / "instance-id"
    if instance.exists():
        shutil.rmtree(socket_root(instance.read_text()), ignore_errors=True)

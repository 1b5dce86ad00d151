"""Where `scripts/public-servers` put the public MCP servers, and how each is started."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PINS = Path(__file__).parents[1] / "public_servers"


@dataclass(frozen=True)
class PublicServers:
    """Entries of an `mcpServers` file for servers that others wrote.

    Attributes:
        folder: the installation.
    """

    folder: Path

    def npm(self, name: str, *args: str, **more: Any) -> dict[str, Any]:
        """A server from npm."""
        return {
            "command": str(self.folder / "node_modules" / ".bin" / f"mcp-server-{name}"),
            "args": [*args],
            **more,
        }

    def pypi(self, name: str, *args: str, **more: Any) -> dict[str, Any]:
        """A server from PyPI."""
        return {"command": str(self.folder / "venv" / "bin" / f"mcp-server-{name}"), "args": [*args], **more}


@pytest.fixture(scope="session")
def public_servers() -> PublicServers:
    """The installed servers; without them tests fail under CI and are skipped elsewhere."""
    locks = b"".join((PINS / name).read_bytes() for name in ("package-lock.json", "requirements.lock"))
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "portside" / "public-servers" / hashlib.sha256(locks).hexdigest()[:12]
    if not (folder / "complete").exists():
        reason = "the public MCP servers are not installed; type: scripts/public-servers"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return PublicServers(folder)

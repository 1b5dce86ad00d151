"""What a command is told: where model and tools are, in its environment and in two files."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

# No key: the real one stays with the orchestrator. Agents want to see something in its place.
PLACEHOLDER_KEY = "held-by-portside"
JOB_MODEL = "portside"
_MAX_VALUE_BYTES = 100_000
_MODEL_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "openai": ("OPENAI_MODEL",),
    "anthropic": ("ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL"),
}


@dataclass(frozen=True, slots=True)
class Announcement:
    """What stands where.

    Attributes:
        task: the job's task.
        model: the job's, as `prefix:name`; None for a job without one.
        relay: the loopback relay's address, such as `http://127.0.0.1:40001`.
        bridge: the bridge's socket.
        directory: where the files are written.
        emptied: variables of the command's environment that must not reach the bridge's program.
    """

    task: str
    model: str | None
    relay: str
    bridge: Path
    directory: Path
    emptied: tuple[str, ...] = ()

    @property
    def task_file(self) -> Path:
        """The task's text."""
        return self.directory / "task.md"

    @property
    def mcp_file(self) -> Path:
        """The bridge, in the common `mcpServers` form."""
        return self.directory / "mcp.json"

    def mcp_config(self) -> str:
        """The MCP file's text. It names a program and a socket and holds no secret."""
        server = {
            "type": "stdio",
            "command": sys.executable,
            # -P: the working directory is the agent's; nothing is imported from it.
            "args": ["-P", "-m", "worker", "mcp", "--socket", str(self.bridge)],
            **({"env": dict.fromkeys(self.emptied, "")} if self.emptied else {}),
        }
        return json.dumps({"mcpServers": {"portside": server}}, indent=2) + "\n"

    def environment(self) -> dict[str, str]:
        """The variables."""
        said = {
            "OPENAI_BASE_URL": f"{self.relay}/llm/openai/v1",
            "OPENAI_API_KEY": PLACEHOLDER_KEY,
            "ANTHROPIC_BASE_URL": f"{self.relay}/llm/anthropic",
            "ANTHROPIC_API_KEY": PLACEHOLDER_KEY,
            "PORTSIDE_MCP_CONFIG": str(self.mcp_file),
            "PORTSIDE_TASK_FILE": str(self.task_file),
            **self._model(),
        }
        if len(self.task.encode("utf-8", "replace")) <= _MAX_VALUE_BYTES and "\0" not in self.task:
            said["PORTSIDE_TASK"] = self.task
        return said

    def _model(self) -> dict[str, str]:
        if self.model is None:
            return {}
        prefix, _, name = self.model.partition(":")
        variables = _MODEL_VARIABLES.get(prefix, ())
        # A script's name is a path on the host; the job's model has a name that always works.
        shown = name if variables else JOB_MODEL
        return dict.fromkeys(("PORTSIDE_MODEL", *variables), shown)

    def write(self) -> None:
        """Write the files; only this user can read them.

        Raises:
            OSError: they can't be written.
        """
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path, text in ((self.task_file, self.task), (self.mcp_file, self.mcp_config())):
            path.write_text(text, encoding="utf-8", errors="replace")
            path.chmod(0o600)

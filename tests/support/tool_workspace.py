"""A workspace with the five local tools, as a job has it.

Tests speak to the tools through `call` and to the files through the methods here only, so another
implementation of this class can run the same tests inside a container.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tool_registry.context import ToolContext
from tool_registry.output import ToolOutput
from tool_registry.tool import Tool
from worker.tools.factory import LocalTools, local_tools

INHERITED = {
    "PATH": os.environ["PATH"],
    "HOME": os.environ.get("HOME", "/"),
    "LANG": "C.UTF-8",
    "HTTP_PROXY": "http://p:3128",
    "WORKER_JWT": "tok-abc123",
    "PROVIDER_API_KEY": "k-xyz789",
}
GIT_IDENTITY = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


class SystemClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        return datetime.fromtimestamp(time.clock_gettime(time.CLOCK_REALTIME), UTC)

    def monotonic(self) -> float:
        return time.monotonic()


class ToolWorkspace:
    """Files, and tools to work on them.

    Attributes:
        path: the workspace.
        outside: an existing, writable directory outside of it.
        output_dir: where the shell saves long outputs.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory / "workspace"
        self.outside = directory / "outside"
        self.output_dir = directory / "out"
        self.path.mkdir()
        self.outside.mkdir()
        self.local: LocalTools = local_tools(
            self.path,
            credentials=GIT_IDENTITY,
            clock=SystemClock(),
            output_dir=self.output_dir,
            inherited=INHERITED,
        )
        self._tools: Mapping[str, Tool] = {tool.definition.name: tool for tool in self.local.tools}
        self._ids = count(1)

    async def close(self) -> None:
        await self.local.close()

    def tool(self, name: str) -> Tool:
        return self._tools[name]

    async def call(self, name: str, **params: Any) -> ToolOutput:
        """Call a tool with arguments that fit its schema; the answer is JSON."""
        tool = self._tools[name]
        jsonschema.validate(params, tool.definition.parameters)
        output = await tool.execute(params, ToolContext(job_id="job", call_id=f"call-{next(self._ids)}"))
        output.text().encode()
        return output

    async def result(self, name: str, **params: Any) -> Any:
        """The result of a call that the tool did not refuse."""
        output = await self.call(name, **params)
        assert not output.is_error, output.result
        return output.result

    async def refusal(self, name: str, **params: Any) -> dict[str, Any]:
        """The answer of a call that the tool refused."""
        output = await self.call(name, **params)
        assert output.is_error, output.result
        assert output.result["code"], output.result
        return output.result

    def put(self, name: str, data: bytes | str, mode: int | None = None) -> Path:
        """Write a file, with its directories."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        if mode is not None:
            path.chmod(mode)
        return path

    def get(self, name: str) -> bytes:
        return (self.path / name).read_bytes()

    def remove(self, name: str) -> None:
        (self.path / name).unlink()

    def put_raw(self, name: bytes, data: bytes) -> None:
        """Write a file whose name need not be UTF-8."""
        Path(os.fsdecode(os.fsencode(self.path) + b"/" + name)).write_bytes(data)

    def get_raw(self, name: bytes) -> bytes:
        return Path(os.fsdecode(os.fsencode(self.path) + b"/" + name)).read_bytes()

    def saved(self, path: str) -> bytes:
        """An output that the shell saved."""
        return Path(path).read_bytes()

    def mode(self, name: str) -> int:
        return (self.path / name).stat().st_mode & 0o7777

    def exists(self, name: str) -> bool:
        return os.path.lexists(self.path / name)

    def link(self, name: str, target: str | Path) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)

    def picture(self) -> dict[str, tuple[int, bytes]]:
        """Every entry of the workspace with its mode and content, to compare before and after."""
        seen: dict[str, tuple[int, bytes]] = {}
        for directory, names, files in os.walk(self.path):
            for name in [*names, *files]:
                path = Path(directory, name)
                state = path.lstat()
                is_link, is_file = path.is_symlink(), path.is_file()
                data = os.fsencode(path.readlink()) if is_link else path.read_bytes() if is_file else b""
                seen[str(path.relative_to(self.path))] = (state.st_mode, data)
        return seen


@pytest.fixture
async def tool_workspace(tmp_path: Path) -> AsyncIterator[ToolWorkspace]:
    workspace = ToolWorkspace(tmp_path)
    yield workspace
    await workspace.close()

"""A workspace with the five local tools, as a job has it.

Tests speak to the tools through `call` and to the files through the methods here only, so that the same
tests run in a plain directory and inside a container, as the unprivileged user that jobs have.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import jsonschema
import pytest

from tests.support.tool_box import ToolBox
from tests.support.workspace_files import WorkspaceFiles
from tool_registry.context import ToolContext
from tool_registry.output import ToolOutput
from tool_registry.tool import Tool
from worker.tools.local_tools import LocalTools, local_tools

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


class Place(Protocol):
    """Where a workspace's files and tools are."""

    base: Path

    def files(self, method: str, *arguments: Any) -> Any:
        """What a method of `WorkspaceFiles` answers there."""
        ...

    async def call(self, name: str, params: dict[str, Any], call_id: str) -> ToolOutput:
        """A tool's answer."""
        ...

    async def ping(self) -> None:
        """Come back as soon as the event loop of the tools gets to it."""
        ...

    async def close(self) -> None:
        """End what the tools started."""
        ...


class Directory:
    """A plain directory of this machine."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self._files = WorkspaceFiles(base)
        self.local: LocalTools = local_tools(
            self._files.path,
            credentials=GIT_IDENTITY,
            clock=SystemClock(),
            output_dir=self._files.output_dir,
            inherited=INHERITED,
        )

    def files(self, method: str, *arguments: Any) -> Any:
        return getattr(self._files, method)(*arguments)

    def tool(self, name: str) -> Tool:
        return next(tool for tool in self.local.tools if tool.definition.name == name)

    async def call(self, name: str, params: dict[str, Any], call_id: str) -> ToolOutput:
        return await self.tool(name).execute(params, ToolContext(job_id="job", call_id=call_id))

    async def ping(self) -> None:
        await asyncio.sleep(0)

    async def close(self) -> None:
        await self.local.close()


class Container:
    """A directory of a container's own."""

    def __init__(self, box: ToolBox) -> None:
        self._box = box
        self._name = uuid4().hex[:12]
        inherited = {name: INHERITED[name] for name in INHERITED if name not in {"PATH", "HOME"}}
        self.base = Path(box.ask(self._name, "open", GIT_IDENTITY, inherited))

    def files(self, method: str, *arguments: Any) -> Any:
        return self._box.ask(self._name, "files", method, *arguments)

    async def call(self, name: str, params: dict[str, Any], call_id: str) -> ToolOutput:
        return await self._box.ask_async(self._name, "call", name, params, call_id)

    async def ping(self) -> None:
        await self._box.ask_async(self._name, "ping")

    async def close(self) -> None:
        await self._box.ask_async(self._name, "close")


class ToolWorkspace:
    """Files, and tools to work on them.

    Attributes:
        path: the workspace.
        outside: an existing, writable directory outside of it.
        output_dir: where the shell saves long outputs.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self.path = place.base / "workspace"
        self.outside = place.base / "outside"
        self.output_dir = place.base / "out"
        self._ids = count(1)

    async def close(self) -> None:
        await self._place.close()

    async def call(self, name: str, **params: Any) -> ToolOutput:
        """Call a tool with arguments that fit its schema; the answer is JSON."""
        jsonschema.validate(params, SCHEMAS[name])
        output = await self._place.call(name, params, f"call-{next(self._ids)}")
        output.text().encode()
        return output

    async def ping(self) -> None:
        """Come back as soon as the event loop of the tools gets to it."""
        await self._place.ping()

    async def unchecked(self, name: str, **params: Any) -> ToolOutput:
        """Call a tool with arguments that no schema was asked about."""
        return await self._place.call(name, params, f"call-{next(self._ids)}")

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

    def put(self, name: str, data: bytes | str, mode: int | None = None) -> None:
        """Write a file, with its directories."""
        self._place.files("put", name, data, mode)

    def get(self, name: str) -> bytes:
        return self._place.files("get", name)

    def remove(self, name: str) -> None:
        self._place.files("remove", name)

    def put_raw(self, name: bytes, data: bytes) -> None:
        """Write a file whose name need not be UTF-8."""
        self._place.files("put_raw", name, data)

    def get_raw(self, name: bytes) -> bytes:
        return self._place.files("get_raw", name)

    def saved(self, path: str) -> bytes:
        """An output that the shell saved."""
        return self._place.files("saved", path)

    def mode(self, name: str) -> int:
        return self._place.files("mode", name)

    def exists(self, name: str) -> bool:
        return self._place.files("exists", name)

    def is_link(self, name: str) -> bool:
        return self._place.files("is_link", name)

    def names(self, name: str = ".") -> list[str]:
        """The entries of a directory, sorted; none when it is not there."""
        return self._place.files("names", name)

    def link(self, name: str, target: str) -> None:
        self._place.files("link", name, target)

    def make_directory(self, name: str) -> None:
        self._place.files("make_directory", name)

    def make_fifo(self, name: str) -> None:
        self._place.files("make_fifo", name)

    def make_socket(self, name: str) -> None:
        self._place.files("make_socket", name)

    def make_many(self, name: str, count: int) -> None:
        """A directory of empty files f000000, f000001, ..."""
        self._place.files("make_many", name, count)

    def umask(self) -> int:
        return self._place.files("umask")

    def picture(self) -> dict[str, tuple[int, bytes]]:
        """Every entry of the workspace with its mode and content, to compare before and after."""
        return self._place.files("picture")

    def processes_with(self, mark: str) -> list[int]:
        """The living processes whose command line holds a text."""
        return self._place.files("processes_with", mark)

    def zombies(self) -> list[int]:
        """The dead children of this process that nobody collected."""
        return self._place.files("zombies")

    def alive(self, pid: int) -> bool:
        return self._place.files("alive", pid)

    def memory_bytes(self) -> int:
        """The memory that this process has had at most."""
        return self._place.files("memory_bytes")

    def forget(self) -> None:
        """Remove everything."""
        self._place.files("forget")


SCHEMAS = {
    tool.definition.name: tool.definition.parameters
    for tool in local_tools(Path("/"), credentials={}, clock=SystemClock(), inherited={}).tools
}


@pytest.fixture(params=["directory", pytest.param("container", marks=pytest.mark.docker)])
def tool_place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A plain directory, and a directory in a container."""
    if request.param == "directory":
        return Directory(tmp_path / "tools")
    return Container(request.getfixturevalue("tool_box"))


@pytest.fixture
async def tool_workspace(tool_place: Place) -> AsyncIterator[ToolWorkspace]:
    """A workspace of this test's own; the test runs in a plain directory and in a container."""
    workspace = ToolWorkspace(tool_place)
    yield workspace
    await workspace.close()
    workspace.forget()


class DirectoryWorkspace(ToolWorkspace):
    """A workspace in a plain directory, whose tools and files a test may touch without asking."""

    def __init__(self, base: Path) -> None:
        place = Directory(base)
        super().__init__(place)
        self.local = place.local

    def tool(self, name: str) -> Tool:
        return next(tool for tool in self.local.tools if tool.definition.name == name)


@pytest.fixture
async def directory_workspace(tmp_path: Path) -> AsyncIterator[DirectoryWorkspace]:
    """For tests that need more than calls and files."""
    workspace = DirectoryWorkspace(tmp_path / "tools")
    yield workspace
    await workspace.close()

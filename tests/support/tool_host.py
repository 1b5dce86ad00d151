"""Runs in a container as the worker's user: serves workspaces with the five local tools to the tests.

Its text follows that of `workspace_files.py` on the command line of a bare interpreter. Requests and
answers are pickles with their length in front: `(number, workspace, operation, arguments)` and
`(number, value, error)`.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import struct
from pathlib import Path
from typing import Any

from tests.support.workspace_files import WorkspaceFiles
from tool_registry.context import ToolContext
from tool_registry.output import ToolOutput
from worker.clock import SystemClock
from worker.hardening import harden
from worker.tools.local_tools import LocalTools, local_tools

BASE = Path("/workspace")


class Host:
    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._open: dict[str, tuple[WorkspaceFiles, LocalTools]] = {}
        self._calls: dict[int, asyncio.Task[Any]] = {}

    def take(self, request: tuple[int, str, str, tuple[Any, ...]]) -> None:
        number, workspace, operation, arguments = request
        if operation == "cancel":
            if arguments[0] in self._calls:  # else it has ended, and its answer is on its way
                self._calls[arguments[0]].cancel()
            return
        call = self._calls[number] = asyncio.create_task(self._do(workspace, operation, arguments))
        call.add_done_callback(lambda done: self._answer(number, done))

    def _answer(self, number: int, done: asyncio.Task[Any]) -> None:
        value: Any = None
        failure = "cancelled"
        if not done.cancelled():
            error = done.exception()
            failure = "" if error is None else f"{type(error).__name__}: {error}"
            value = done.result() if error is None else None
        data = pickle.dumps((number, value, failure))
        self._writer.write(struct.pack("<I", len(data)) + data)
        del self._calls[number]

    async def _do(self, workspace: str, operation: str, arguments: tuple[Any, ...]) -> Any:
        if operation == "ping":
            return None
        if operation == "open":
            credentials, inherited = arguments
            files = WorkspaceFiles(BASE / workspace)
            tools = local_tools(
                files.path,
                credentials=credentials,
                clock=SystemClock(),
                output_dir=files.output_dir,
                inherited={**os.environ, **inherited},
            )
            self._open[workspace] = (files, tools)
            return str(files.base)
        files, tools = self._open[workspace]
        if operation == "call":
            return await self._call(tools, *arguments)
        if operation == "close":
            return await tools.close()
        name, *rest = arguments
        return await asyncio.to_thread(getattr(files, name), *rest)

    async def _call(self, tools: LocalTools, name: str, params: dict[str, Any], call_id: str) -> ToolOutput:
        tool = next(tool for tool in tools.tools if tool.definition.name == name)
        return await tool.execute(params, ToolContext(job_id="job", call_id=call_id))


async def main() -> None:
    harden()
    reader, writer = await asyncio.open_unix_connection("/run/portside/s")
    host = Host(writer)
    while True:
        try:
            (size,) = struct.unpack("<I", await reader.readexactly(4))
        except asyncio.IncompleteReadError:
            return
        host.take(pickle.loads(await reader.readexactly(size)))


if __name__ == "__main__":
    asyncio.run(main())

"""A container of the worker image that serves workspaces with the five tools, for the whole test run."""

from __future__ import annotations

import asyncio
import pickle
import socket
import struct
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from container.adapters.docker.engine import DockerEngine
from container.engine.sandbox import SandboxRef
from tests.support.sandboxes import Sandboxes, socket_directory

_HERE = Path(__file__).parent
_START_S = 60.0
_ANSWER_S = 90.0


class ToolBox:
    """One container; any event loop may ask it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._numbers = count(1)
        self._waiting: dict[int, Future[Any]] = {}
        self._lock = threading.Lock()
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def ask(self, workspace: str, operation: str, *arguments: Any) -> Any:
        """Ask and wait, in this thread."""
        return self.send(workspace, operation, *arguments)[1].result(_ANSWER_S)

    async def ask_async(self, workspace: str, operation: str, *arguments: Any) -> Any:
        """Ask and wait; a cancel is passed on, and waited for."""
        number, future = self.send(workspace, operation, *arguments)
        answer = asyncio.wrap_future(future)
        try:
            await asyncio.wait({answer}, timeout=_ANSWER_S)
        except asyncio.CancelledError:
            self.send(workspace, "cancel", number)
            await asyncio.wait({answer}, timeout=_ANSWER_S)
            assert answer.done(), "a cancelled call never ended"
            answer.exception()  # looked at: it is the cancel, or the call was faster
            raise
        if not answer.done():
            raise BoxFailure(f"no answer to {operation} within {_ANSWER_S:g} s")
        return answer.result()

    def send(self, workspace: str, operation: str, *arguments: Any) -> tuple[int, Future[Any]]:
        number, future = next(self._numbers), Future[Any]()
        future.set_running_or_notify_cancel()  # whoever gives up waiting takes nothing from the reader
        self._waiting[number] = future
        data = pickle.dumps((number, workspace, operation, arguments))
        if self._ended:
            raise BoxFailure("the container has ended")
        with self._lock:
            self._connection.sendall(struct.pack("<I", len(data)) + data)
        return number, future

    def close(self) -> None:
        self._connection.shutdown(socket.SHUT_RDWR)
        self._reader.join(10)
        self._connection.close()

    def _read(self) -> None:
        with self._connection.makefile("rb") as stream:
            while head := stream.read(4):
                number, value, failure = pickle.loads(stream.read(struct.unpack("<I", head)[0]))
                future = self._waiting.pop(number)
                if failure:
                    future.set_exception(BoxFailure(failure))
                else:
                    future.set_result(value)
        self._ended = True
        for future in list(self._waiting.values()):
            future.set_exception(BoxFailure("the container has ended"))


class BoxFailure(Exception):
    """What went wrong in the container."""


@pytest.fixture(scope="session")
def tool_box(docker_engine: DockerEngine, worker_image: str) -> Iterator[ToolBox]:
    """A container with the tools, in which nothing but the tests differs from a job's."""
    with tempfile.TemporaryDirectory(prefix="ptb-") as made, socket.socket(socket.AF_UNIX) as listener:
        directory = socket_directory(Path(made))
        listener.bind(str(directory / "s"))
        (directory / "s").chmod(0o666)
        listener.listen()
        listener.settimeout(_START_S)
        sandboxes = Sandboxes(docker_engine, worker_image)
        ref = asyncio.run(_launch(sandboxes, directory))
        try:
            connection, _ = listener.accept()
            connection.settimeout(None)
            box = ToolBox(connection)
            yield box
            box.close()
        finally:
            asyncio.run(sandboxes.remove_all())
        assert ref.id


async def _launch(sandboxes: Sandboxes, directory: Path) -> SandboxRef:
    texts = ((_HERE / name).read_text() for name in ("workspace_files.py", "tool_host.py"))
    lines = "\n".join(texts).splitlines()
    # One program: without the import of its first half, and without what has to come first.
    code = "\n".join(line for line in lines if not line.startswith(("from __future__", "from tests.")))
    return await sandboxes.launch("python", "-P", "-c", code, socket_dir=directory, deadline_s=3600.0)

"""Unix sockets: one directory and socket a job, all in front of one app."""

from __future__ import annotations

import asyncio
import shutil
import socket
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp

from orchestrator.adapters.sockets.doorway import Tunnel
from orchestrator.adapters.sockets.http_listener import HttpListener, Marked

JobTunnel = Callable[[str, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

SOCKET_NAME = "s"
TOKEN_NAME = "token"  # noqa: S105 - a file's name
_MAX_PATH_BYTES = 107


class UnixSocket:
    """One app behind one unix socket, and a `tunnel` where there is one."""

    def __init__(self, app: ASGIApp, path: Path, *, mode: int, tunnel: Tunnel | None = None) -> None:
        self._listener = HttpListener(app, tunnel)
        self._path = path
        self._mode = mode

    async def open(self) -> None:
        """Listen; a socket file that a killed process left is replaced.

        Raises:
            OSError: the path is too long or can't be bound.
        """
        if len(str(self._path).encode()) > _MAX_PATH_BYTES:
            raise OSError(
                f"the socket path {self._path} is longer than {_MAX_PATH_BYTES} bytes; use a shorter home"
            )
        self._path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(str(self._path))
            self._path.chmod(self._mode)
            await self._listener.open(listener)
        except OSError:
            listener.close()
            raise

    async def close(self) -> None:
        """Stop listening; requests under way are cut off after a moment.

        A close that is cut off itself can be repeated.
        """
        if self._listener.listening:
            await self._listener.close()
            self._path.unlink(missing_ok=True)


class UnixJobSockets:
    """`JobSockets` below one directory that only this user can enter.

    The engine mounts a job's directory, never the socket file, so a restarted orchestrator can listen
    again. The file is open to all: the directory above keeps everybody on the host out.
    """

    def __init__(self, root: Path, *, mark: str) -> None:
        self._root = root
        self._mark = mark
        self._app: ASGIApp | None = None
        self._tunnel: JobTunnel | None = None
        self._open: dict[str, UnixSocket] = {}

    def serve(self, app: ASGIApp, tunnel: JobTunnel | None = None) -> None:
        """Name the app behind every socket, and who serves CONNECT there; before the first `open`."""
        self._app = app
        self._tunnel = tunnel

    async def open(self, job_id: str, token: str | None) -> Path:
        """Make the directory and listen."""
        if self._app is None:
            message = "serve() names the app before the first socket is opened"
            raise RuntimeError(message)
        directory = self._directory(job_id)
        await asyncio.to_thread(self._prepare, directory, token)
        if job_id not in self._open:
            marks: dict[str, Any] = {self._mark: job_id}
            tunnel = partial(self._tunnel, job_id) if self._tunnel else None
            app = Marked(self._app, marks)
            listening = UnixSocket(app, directory / SOCKET_NAME, mode=0o666, tunnel=tunnel)
            await listening.open()
            self._open[job_id] = listening
        return directory

    def _prepare(self, directory: Path, token: str | None) -> None:
        self._root.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._root.chmod(0o700)
        directory.mkdir(exist_ok=True)
        directory.chmod(0o755)
        if token is not None:
            file = directory / TOKEN_NAME
            file.unlink(missing_ok=True)
            file.write_text(token)
            file.chmod(0o444)

    def job_ids(self) -> Collection[str]:
        """The jobs that are listened for."""
        return tuple(self._open)

    async def remove_others(self, job_ids: Collection[str]) -> None:
        """Remove the directories that a killed run left for any job but these."""
        kept = {self._directory(job_id) for job_id in job_ids}
        await asyncio.to_thread(self._remove_all_but, kept)

    def _remove_all_but(self, kept: Collection[Path]) -> None:
        for directory in self._root.iterdir() if self._root.exists() else ():
            if directory not in kept:
                shutil.rmtree(directory, ignore_errors=True)

    def remove_token(self, job_id: str) -> None:
        """Take the token file away."""
        (self._directory(job_id) / TOKEN_NAME).unlink(missing_ok=True)

    async def close(self, job_id: str) -> None:
        """Stop listening and remove the directory; one that is cut off can be asked for again."""
        listening = self._open.get(job_id)
        if listening is not None:
            await listening.close()
        await asyncio.to_thread(shutil.rmtree, self._directory(job_id), ignore_errors=True)
        self._open.pop(job_id, None)

    async def close_all(self) -> None:
        """Stop listening everywhere; directories stay for the run that comes after."""
        for listening in list(self._open.values()):
            await listening.close()
        self._open.clear()

    def _directory(self, job_id: str) -> Path:
        return self._root / job_id.replace("-", "")[-12:]

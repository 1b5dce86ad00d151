"""Squid as a process of ours: started, told of a new configuration, read, ended."""

from __future__ import annotations

import asyncio
import hashlib
import os
import pwd
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

from orchestrator.ports.egress import ProxyFailed

_PLACES = "/usr/sbin:/usr/local/sbin:/sbin"
_WORKER_USER = "proxy"  # whom squid becomes when root starts it; Debian's package sees to it
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where squid puts it
_MAX_LINE = 64 * 1024
_LAST_WORDS = 500


def find_squid() -> str | None:
    """Where squid is; Debian keeps servers out of most users' PATH."""
    return shutil.which("squid", path=f"{os.environ.get('PATH', '')}:{_PLACES}")


class SquidProcess:
    """One squid in the foreground, whose configuration lies beside its messages."""

    def __init__(self, binary: str, directory: Path) -> None:
        self._binary = binary
        self._directory = directory
        self._process: asyncio.subprocess.Process | None = None
        self._log: asyncio.StreamReader | None = None
        self._log_pipe: asyncio.ReadTransport | None = None

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process is not None and self._process.returncode is None

    @property
    def messages(self) -> Path:
        """What it complains of."""
        return self._directory / "squid.log"

    @property
    def service(self) -> str:
        """Its name among this machine's squids, which else would take each other's shared memory."""
        return f"portside{hashlib.sha256(str(self._directory).encode()).hexdigest()[:12]}"

    def write(self, configuration: str) -> None:
        """Put its configuration down; `start` or `reload` makes it count."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self._directory / "squid.conf.new"
        draft.touch(mode=0o600)
        draft.write_text(configuration, encoding="ascii")
        draft.replace(self._directory / "squid.conf")

    async def start(self) -> None:
        """Start it, after the end of one that a killed orchestrator left.

        Raises:
            ProxyFailed: it can't be started.
        """
        self.end_leftovers()
        reading, writing = os.pipe()
        try:
            if os.geteuid() == 0:
                os.fchown(writing, pwd.getpwnam(_WORKER_USER).pw_uid, -1)  # it opens its log anew
            with self.messages.open("wb") as messages:
                self._process = await asyncio.create_subprocess_exec(
                    self._binary,
                    "-N",
                    "-d0",
                    "-n",
                    self.service,
                    "-f",
                    str(self._directory / "squid.conf"),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=writing,
                    stderr=messages,
                    cwd="/",
                    env={"PATH": _PLACES, "LANG": "C"},  # no key of ours
                    start_new_session=True,  # a Ctrl-C at the terminal is not for it
                )
        except (OSError, KeyError) as error:
            os.close(reading)
            raise ProxyFailed(f"squid can't be started: {error}") from error
        finally:
            os.close(writing)
        await self._listen(reading)

    async def _listen(self, reading: int) -> None:
        loop = asyncio.get_running_loop()
        log = asyncio.StreamReader(limit=_MAX_LINE)
        pipe = os.fdopen(reading, "rb", buffering=0)
        self._log_pipe, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(log), pipe)
        self._log = log

    async def lines(self) -> AsyncIterator[str]:
        """Its log as it comes, to the end of the process. Read on: a full pipe stops everything."""
        assert self._log is not None
        while line := await self._log.readline():
            yield line.decode("ascii", "replace").rstrip("\n")

    def reload(self) -> None:
        """Make a new configuration count; open connections go on."""
        if self._process is not None and self.alive:
            self._process.send_signal(signal.SIGHUP)

    async def stop(self) -> None:
        """End it. It keeps nothing that an orderly end would save."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
            self._forget_shared_memory()

    def _forget_shared_memory(self) -> None:
        for file in _SHARED_MEMORY.glob(f"{self.service}-*.shm"):
            with suppress(OSError):
                file.unlink()

    def close(self) -> None:
        """Let go of its log, after the last line was read."""
        if self._log_pipe is not None:
            self._log_pipe.close()

    def last_words(self) -> str:
        """The end of what it complained of, as one line."""
        with suppress(OSError):
            return " ".join(self.messages.read_text(encoding="utf-8", errors="replace").split())[
                -_LAST_WORDS:
            ]
        return ""

    def end_leftovers(self) -> None:
        """End what a killed orchestrator left running, at whatever moment it was killed."""
        for pid in self.running():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._forget_shared_memory()

    def running(self) -> list[int]:
        """The processes that were started with this configuration."""
        configuration = str(self._directory / "squid.conf").encode()
        found: list[int] = []
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended
                if configuration in (entry / "cmdline").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
        return found

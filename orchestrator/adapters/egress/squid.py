"""`EgressProxy` through one squid on this host."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import structlog

from orchestrator.adapters.egress.configuration import (
    GENERATION_HEADER,
    JOB_HEADER,
    Admitted,
    Layout,
    configuration,
)
from orchestrator.adapters.egress.log import carried, cause_of
from orchestrator.adapters.egress.own_addresses import own_networks
from orchestrator.adapters.egress.process import SquidProcess, find_squid
from orchestrator.domain.egress.addresses import Network, closed_networks
from orchestrator.domain.egress.patterns import HostPattern
from orchestrator.ports.egress import Carried, ConnectionDenied, ProxyFailed, Way

_log = structlog.get_logger(__name__)
_HOST = "127.0.0.1"
_READY_S = 15.0
_ANSWER_S = 60.0
_POLL_S = 0.02
_LAST_LINES_S = 5.0
_MAX_HEAD = 64 * 1024
_STARTS = 3
# Of a line of the configuration that squid leaves out. With a part of it missing nothing holds.
_LEFT_OUT = "is ignored"

Tell = Callable[[Carried], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class SquidSettings:
    """How squid is run.

    Attributes:
        directory: private to us; made when it is needed.
        opened: networks that are open to jobs although they are no part of the public network.
        nameservers: in place of the system's.
        how_to_install: what to type where it is missing.
        binary: "" is the one that is found.
    """

    directory: Path
    opened: tuple[Network, ...] = ()
    nameservers: tuple[str, ...] = ()
    how_to_install: str = ""
    binary: str = ""

    def found(self) -> str | None:
        """Where squid is; None when it is nowhere."""
        if not self.binary:
            return find_squid()
        return self.binary if os.access(self.binary, os.X_OK) else None

    def missing(self) -> str:
        """What keeps it from being used here, and the command that changes it; empty when nothing does."""
        if self.found():
            return ""
        return f"allowed hosts are reached through squid, which is not there. {self.how_to_install}"


class SquidProxy:
    """Starts squid for the first job that needs it; the same one serves all jobs after it.

    A job is known to squid by a key that nobody else has: any process of this host may reach its port.

    Args:
        settings: how it is run.
        tell: told of each connection after its end, in order.
    """

    def __init__(self, settings: SquidSettings, tell: Tell) -> None:
        self._settings = settings
        self._tell = tell
        self._jobs: dict[str, Admitted] = {}
        self._changing = asyncio.Lock()
        self._process: SquidProcess | None = None
        self._following: asyncio.Task[None] | None = None
        self._port = 0

    def missing(self) -> str:
        """What keeps it from being used here."""
        return self._settings.missing()

    async def end_leftovers(self) -> None:
        """End a squid that a killed orchestrator left; for the only one that uses this directory."""
        await asyncio.to_thread(SquidProcess("", self._settings.directory).end_leftovers)

    async def admit(self, job_id: str, hosts: Sequence[HostPattern]) -> None:
        """Let a job reach these hosts."""
        async with self._changing:
            known = self._jobs.get(job_id)
            if known is not None and self._runs():
                return
            self._jobs[job_id] = known or Admitted(job_id, secrets.token_hex(32), tuple(hosts))
            try:
                await self._apply()
            except ProxyFailed:
                del self._jobs[job_id]
                raise

    async def dismiss(self, job_ids: Collection[str]) -> None:
        """Let these jobs reach nothing any more."""
        async with self._changing:
            gone = self._jobs.keys() & set(job_ids)
            for job_id in gone:
                del self._jobs[job_id]
            if gone and self._runs():
                await self._apply()

    async def connect(self, job_id: str, host: str, port: int) -> Way:
        """Ask squid for a connection."""
        job = self._jobs.get(job_id)
        if job is None:
            raise ProxyFailed("this job was not admitted")
        if not self._runs():
            await self.admit(job_id, job.hosts)
        try:
            async with asyncio.timeout(_ANSWER_S):
                return await self._asked(job, f"{host}:{port}")
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            raise ProxyFailed(f"squid gave no answer ({type(error).__name__}); try again") from error

    async def close(self) -> None:
        """End squid; the last connections are still told of."""
        async with self._changing:
            await self._stop()

    async def _asked(self, job: Admitted, target: str) -> Way:
        reader, writer = await self._reached()
        try:
            head = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{JOB_HEADER}: {job.key}\r\n\r\n"
            writer.write(head.encode("ascii"))
            status, headers = _answer(await reader.readuntil(b"\r\n\r\n"))
        except BaseException:
            writer.close()
            raise
        if status == 200:
            return reader, writer
        writer.close()
        raise ConnectionDenied(cause_of(headers.get("x-squid-error", "").partition(" ")[0]))

    async def _reached(self) -> Way:
        """A line to squid, which does not listen for a moment while it reads a new configuration."""
        while True:
            try:
                return await asyncio.open_connection(_HOST, self._port, limit=_MAX_HEAD)
            except ConnectionRefusedError:
                if not self._runs():
                    raise
                await asyncio.sleep(_POLL_S)

    def _runs(self) -> bool:
        return self._process is not None and self._process.alive

    async def _apply(self) -> None:
        """Make the present jobs the ones that squid knows.

        Raises:
            ProxyFailed: it does not come up.
        """
        if self._process is not None and self._runs():
            generation = await self._write(self._process)
            self._process.reload()
            await self._ready(self._process, generation)
            return
        for left in reversed(range(_STARTS)):
            await self._stop()
            try:
                await self._start()
                break
            except ProxyFailed:
                if not left:
                    await self._stop()
                    raise

    async def _start(self) -> None:
        binary = self._settings.found()
        if binary is None:
            raise ProxyFailed(self.missing())
        self._port = _free_port()
        process = self._process = SquidProcess(binary, self._settings.directory)
        generation = await self._write(process)
        await process.start()
        self._following = asyncio.create_task(self._follow(process))
        await self._ready(process, generation)

    async def _write(self, process: SquidProcess) -> str:
        """Write the configuration; answers its name."""
        settings, generation = self._settings, secrets.token_hex(8)
        layout = Layout(self._port, closed_networks(settings.opened, own_networks()), settings.nameservers)
        text = configuration(layout, self._jobs, generation)
        try:
            await asyncio.to_thread(process.write, text)
        except OSError as error:
            raise ProxyFailed(f"squid's configuration can't be written: {error}") from error
        return generation

    async def _ready(self, process: SquidProcess, generation: str) -> None:
        """Wait until the configuration of this name is in force."""
        try:
            async with asyncio.timeout(_READY_S):
                while not await self._in_force(generation):
                    if not process.alive:
                        raise ProxyFailed(f"squid ended at once: {process.last_words()}")
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            raise ProxyFailed(f"squid did not come up in {_READY_S:g} s: {process.last_words()}") from None
        if _LEFT_OUT in (words := process.last_words()):
            raise ProxyFailed(f"squid does not take its configuration as a whole: {words}")

    async def _in_force(self, generation: str) -> bool:
        try:
            reader, writer = await asyncio.open_connection(_HOST, self._port, limit=_MAX_HEAD)
        except OSError:
            return False
        try:
            writer.write(f"GET http://x/ HTTP/1.0\r\n{GENERATION_HEADER}: {generation}\r\n\r\n".encode())
            _, headers = _answer(await reader.readuntil(b"\r\n\r\n"))
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return False
        finally:
            writer.close()
        return headers.get("location") == f"http://{generation}.invalid/"

    async def _follow(self, process: SquidProcess) -> None:
        async for line in process.lines():
            try:
                await self._tell(carried(line))
            except Exception:  # noqa: BLE001 - squid waits for its log to be read, and all jobs for squid
                _log.exception("egress_line_not_told", line=line[:500])

    async def _stop(self) -> None:
        process, self._process = self._process, None
        following, self._following = self._following, None
        if process is None:
            return
        await process.stop()
        if following is not None:
            await asyncio.wait({following}, timeout=_LAST_LINES_S)
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following
        process.close()


def _answer(head: bytes) -> tuple[int, dict[str, str]]:
    """Status and headers, names in lower case."""
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    words = first.split(" ")
    return int(words[1]) if len(words) > 1 and words[1].isdecimal() else 0, headers


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return int(probe.getsockname()[1])

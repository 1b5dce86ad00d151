"""A connection to an allowed host, over the job's socket."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx

from tool_registry.clock import Clock
from tool_registry.errors import PortsideError, RemoteProblem
from worker.errors import OrchestratorUnreachable
from worker.problem import problem_of
from worker.token import Token

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]

_MAX_HEAD_BYTES = 64 * 1024
_MAX_PROBLEM_BYTES = 64 * 1024
_RETRY_S = 0.25
_ANSWER_S = 90.0


class EgressLine:
    """Asks the orchestrator for connections.

    Args:
        token: the job's, as it stands at each request.
        renew: takes a fresh one.
        outage_s: how long an orchestrator that does not listen is waited for; clients wait no longer.
    """

    def __init__(
        self,
        socket: Path,
        token: Token,
        *,
        renew: Callable[[], Awaitable[object]],
        clock: Clock,
        outage_s: float = 60.0,
    ) -> None:
        self._socket = socket
        self._token = token
        self._renew = renew
        self._clock = clock
        self._outage_s = outage_s

    async def open(self, target: str) -> Ends:
        """A connection to `host:port`.

        Raises:
            PortsideError: it was refused, or there is no answer; the message is for whoever asked.
        """
        try:
            return await self._asked(target)
        except RemoteProblem as problem:
            if problem.code != "token_expired":
                raise
        await self._renew()
        return await self._asked(target)

    async def _asked(self, target: str) -> Ends:
        reader, writer = await self._reached()
        try:
            async with asyncio.timeout(_ANSWER_S):
                head = (
                    f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nAuthorization: Bearer {self._token.text}"
                )
                writer.write(f"{head}\r\n\r\n".encode("latin-1"))
                answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                if answer.startswith("HTTP/1.1 200 "):
                    return reader, writer
                raise await _problem(answer, reader)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            writer.close()
            raise OrchestratorUnreachable("the orchestrator gave no answer; try again") from error
        except BaseException:
            writer.close()
            raise

    async def _reached(self) -> Ends:
        began = self._clock.monotonic()
        while True:
            try:
                return await asyncio.open_unix_connection(str(self._socket), limit=_MAX_HEAD_BYTES)
            except OSError as error:
                if self._clock.monotonic() - began >= self._outage_s:
                    raise OrchestratorUnreachable(
                        "the orchestrator does not answer; try again later"
                    ) from error
                await asyncio.sleep(_RETRY_S)


async def _problem(answer: str, reader: asyncio.StreamReader) -> PortsideError:
    status = answer.split(" ", 2)[1]
    body = await reader.read(_MAX_PROBLEM_BYTES)
    while len(body) < _MAX_PROBLEM_BYTES and (more := await reader.read(_MAX_PROBLEM_BYTES)):
        body += more
    return problem_of(httpx.Response(int(status) if status.isdecimal() else 502, content=body))

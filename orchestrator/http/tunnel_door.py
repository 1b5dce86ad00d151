"""The one thing on a job's socket that is no route: CONNECT, by which its commands reach allowed hosts."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from http import HTTPStatus
from typing import Any

import h11
import structlog

from orchestrator.domain.jobs import Job
from orchestrator.errors import BadRequest, EgressRefused
from orchestrator.http.auth import SOCKET_JOB, worker_job
from orchestrator.http.problems import problem_of
from orchestrator.ports.egress import Way
from orchestrator.ports.errors import StoreUnavailable
from orchestrator.services.egress import Egress
from orchestrator.services.tokens import TokenService
from orchestrator.services.tunnels import Joined
from tool_registry.errors import PortsideError
from worker.protocol.problems import MEDIA_TYPE

_log = structlog.get_logger(__name__)
_HEAD_S = 10.0
_MAX_HEAD_BYTES = 16 * 1024
_LAST_ANSWER_S = 5.0
_MADE = b"HTTP/1.1 200 Connection established\r\n\r\n"


class TunnelDoor:
    """Lets the worker of a job's socket through to one host at a time, with its token."""

    def __init__(self, tokens: TokenService, egress: Egress) -> None:
        self._tokens = tokens
        self._egress = egress

    async def __call__(self, job_id: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection to its end."""
        try:
            await self._serve(job_id, (reader, writer))
        except (ConnectionError, TimeoutError, asyncio.IncompleteReadError):
            pass  # the other end is gone, or never said what it wants
        except Exception:  # noqa: BLE001 - a bug ends one connection, not all
            _log.exception("tunnel_broke", job_id=job_id)
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _serve(self, job_id: str, worker: Way) -> None:
        try:
            target, headers = await self._asked(worker[0])
            job = await self._admitted(job_id, headers)
            host, port = _host_and_port(target)
            async with self._egress.tunnel(job, host, port) as tunnel:
                worker[1].write(_MADE)
                await Joined(worker, tunnel.way, idle_s=tunnel.idle_s, spend=tunnel.spend).run()
        except (PortsideError, StoreUnavailable) as error:
            await self._refuse(worker[1], problem_of(error))

    async def _asked(self, reader: asyncio.StreamReader) -> tuple[str, list[tuple[bytes, bytes]]]:
        """Target and headers of the request. Bytes of the tunnel may lie behind it: they stay unread."""
        http = h11.Connection(h11.SERVER, max_incomplete_event_size=_MAX_HEAD_BYTES)
        try:
            async with asyncio.timeout(_HEAD_S):
                http.receive_data(await reader.readuntil(b"\r\n\r\n"))
            request = http.next_event()
        except (h11.RemoteProtocolError, asyncio.LimitOverrunError):
            raise BadRequest("this is no CONNECT of HTTP/1.1") from None
        if not isinstance(request, h11.Request) or request.method != b"CONNECT":
            raise BadRequest("this is no CONNECT of HTTP/1.1")
        return request.target.decode("latin-1"), list(request.headers)

    async def _admitted(self, job_id: str, headers: list[tuple[bytes, bytes]]) -> Job:
        scope: dict[str, Any] = {"headers": headers, SOCKET_JOB: job_id}
        return await worker_job(scope, job_id, self._tokens)

    async def _refuse(self, writer: asyncio.StreamWriter, body: dict[str, Any]) -> None:
        content = json.dumps(body, ensure_ascii=False).encode()
        status = HTTPStatus(body["status"])
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {MEDIA_TYPE}\r\n"
            f"Content-Length: {len(content)}\r\nConnection: close\r\n\r\n"
        )
        writer.write(head.encode("ascii") + content)
        async with asyncio.timeout(_LAST_ANSWER_S):
            await writer.drain()


def _host_and_port(target: str) -> tuple[str, int]:
    host, _, port = target.rpartition(":")
    if not host or not port.isascii() or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise EgressRefused("ask for host:port", "not_a_host")
    return host.lower().rstrip("."), int(port)

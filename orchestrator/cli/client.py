"""The operator API as the command line speaks it: HTTP over the orchestrator's own unix socket."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import httpx
from anyio.to_thread import run_sync
from starlette.types import ASGIApp

from orchestrator.cli.failures import FAILED, USAGE, CommandFailed
from orchestrator.settings import Settings

_TIMEOUT = httpx.Timeout(30.0, connect=5.0)
_PART_BYTES = 16 * 1024 * 1024
_KNOCK_S = 5.0
_SILENCE_S = 60.0  # the stream says every ten seconds that it lives


class ApiProblem(CommandFailed):
    """The orchestrator refused; `body` is its problem."""

    def __init__(self, body: dict[str, Any]) -> None:
        hint = body.get("hint")
        super().__init__(
            str(body.get("detail", "the orchestrator refused")) + (f" ({hint})" if hint else ""),
            exit_code=USAGE if body.get("code") == "invalid_request" else FAILED,
        )
        self.body = body


class OperatorClient:
    """Asks an orchestrator.

    Attributes:
        settings: of the home that it belongs to.
        embedded: the orchestrator lives in this process, and ends with it.

    Raises:
        ApiProblem: from every method, for what the orchestrator refused.
        CommandFailed: it can't be reached.
    """

    def __init__(
        self, settings: Settings, transport: httpx.AsyncBaseTransport, *, where: str, embedded: bool
    ) -> None:
        self.settings = settings
        self.embedded = embedded
        self._where = where
        self._transport = transport
        self._token_file = settings.operator_token_file
        self._http: httpx.AsyncClient | None = None

    @classmethod
    def over_socket(cls, settings: Settings, *, embedded: bool = False) -> Self:
        """A client of whoever listens on the home's socket."""
        socket = str(settings.api_socket)
        # Nothing is encrypted there: without `verify` no certificates are loaded.
        transport = httpx.AsyncHTTPTransport(uds=socket, verify=False)
        return cls(settings, transport, where=socket, embedded=embedded)

    @classmethod
    def over_app(cls, settings: Settings, app: ASGIApp) -> Self:
        """A client of an application in this process; answers come whole, never as a stream."""
        return cls(settings, httpx.ASGITransport(app), where="in this process", embedded=True)

    async def __aenter__(self) -> Self:
        try:
            token = self._token_file.read_text().strip()
        except OSError as error:
            raise CommandFailed(
                f"the operator token {self._token_file} can't be read: {error.strerror}"
            ) from None
        self._http = httpx.AsyncClient(
            transport=self._transport,
            base_url="http://portside",
            headers={"Authorization": f"Bearer {token}"},
            timeout=_TIMEOUT,
            trust_env=False,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._http is not None:
            await self._http.aclose()

    async def reachable(self) -> bool:
        """Whether an orchestrator answers."""
        try:
            return (await self._client.get("/health", timeout=_KNOCK_S)).status_code == 200
        except httpx.HTTPError:
            return False

    async def get(self, path: str, **params: Any) -> Any:
        """A GET's JSON."""
        return await self._json("GET", path, params=params or None)  # none would take the path's own away

    async def post(self, path: str, body: Any = None, *, timeout_s: float | None = None) -> Any:
        """A POST's JSON; None for an empty answer."""
        return await self._json("POST", path, json=body, **_timeout(timeout_s))

    async def put(self, path: str, body: Any, *, timeout_s: float | None = None) -> Any:
        """A PUT's JSON; None for an empty answer."""
        return await self._json("PUT", path, json=body, **_timeout(timeout_s))

    async def patch(self, path: str, body: Any) -> Any:
        """A PATCH's JSON."""
        return await self._json("PATCH", path, json=body)

    async def delete(self, path: str) -> None:
        """A DELETE."""
        await self._json("DELETE", path)

    async def upload(self, path: str, pieces: Iterator[bytes]) -> Any:
        """PUT a stream; its pieces are made in another thread."""
        return await self._json("PUT", path, content=_made(pieces), timeout=httpx.Timeout(600.0, connect=5.0))

    async def bytes(self, path: str) -> bytes:
        """A GET's bytes."""
        answer = await self._send("GET", path, timeout=_SILENCE_S)
        return answer.content

    async def download(self, path: str, to: Path) -> None:
        """Write a GET's bytes to a file, a part at a time: an application in this process answers whole."""
        part, offset = await self._part(path, 0), 0
        with to.open("wb") as file:
            while part:
                file.write(part)
                offset += len(part)
                part = await self._part(path, offset)

    async def _part(self, path: str, offset: int) -> bytes:
        params = {"offset": offset, "limit": _PART_BYTES}
        return (await self._send("GET", path, params=params, timeout=_SILENCE_S)).content

    async def events(self, job_id: str, *, after: int = 0) -> AsyncGenerator[dict[str, Any]]:
        """A job's timeline as it grows; ends when the job has ended, or the orchestrator has."""
        try:
            async with self._client.stream(
                "GET",
                f"/api/v1/jobs/{job_id}/events",
                params={"after": after},
                headers={"Accept": "text/event-stream"},
                timeout=httpx.Timeout(_SILENCE_S, connect=5.0),
            ) as answer:
                if answer.status_code != 200:
                    await answer.aread()
                    raise _problem(answer)
                async for line in _lines(answer):
                    if line.startswith(b"data: "):
                        yield json.loads(line[6:])
        except httpx.HTTPError:
            return  # the orchestrator ended, or is stuck: whoever watches looks whether the job goes on

    async def timeline(self, job_id: str, *, after: int = 0) -> list[dict[str, Any]]:
        """A job's timeline up to now."""
        events: list[dict[str, Any]] = []
        while page := await self.get(f"/api/v1/jobs/{job_id}/events", after=after):
            events += page
            after = page[-1]["position"]
        return events

    @property
    def _client(self) -> httpx.AsyncClient:
        if self._http is None:
            message = "use the client in an async with"
            raise RuntimeError(message)
        return self._http

    async def _json(self, method: str, path: str, **options: Any) -> Any:
        answer = await self._send(method, path, **options)
        return answer.json() if answer.content else None

    async def _send(self, method: str, path: str, **options: Any) -> httpx.Response:
        try:
            answer = await self._client.request(method, path, **options)
        except httpx.HTTPError as error:
            raise CommandFailed(
                f"the orchestrator ({self._where}) does not answer: {error or type(error).__name__}"
            ) from None
        if answer.is_success:
            return answer
        raise _problem(answer)


def _timeout(timeout_s: float | None) -> dict[str, Any]:
    return {} if timeout_s is None else {"timeout": httpx.Timeout(timeout_s, connect=5.0)}


def _problem(answer: httpx.Response) -> ApiProblem:
    try:
        body: Any = answer.json()
    except ValueError:
        body = None
    if not isinstance(body, dict):
        body = {"detail": f"the orchestrator answered {answer.status_code}"}
    return ApiProblem(cast("dict[str, Any]", body))


async def _lines(answer: httpx.Response) -> AsyncIterator[bytes]:
    """Lines as the stream means them: other line breaks than LF stand inside of what agents wrote."""
    rest = b""
    async for chunk in answer.aiter_bytes():
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line


async def _made(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    while piece := await run_sync(next, pieces, b""):
        yield piece

"""Native requests to a provider: the key is added here, and an answer comes back byte for byte."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Literal

import httpx

from orchestrator.ports.models import ModelError
from orchestrator.ports.native_models import NativeAnswer, NativeRequest

_BASE_URLS = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}
_ANTHROPIC_VERSION = "2023-06-01"
_CONNECT_S = 10.0
# Until the first byte a local server reads a long prompt; between two it must not fall silent.
_READ_S = 300.0
_RETURNED = frozenset({"content-type", "retry-after", "retry-after-ms", "x-should-retry", "cache-control"})


class NativeUpstream:
    """A provider, or a server that speaks as it does.

    Args:
        dialect: which of the two APIs is spoken.
        api_key: of the provider; may be empty for a server of one's own.
        base_url: of a compatible server; None is the provider itself.
        read_s: how long it may be silent.
    """

    def __init__(
        self,
        dialect: Literal["openai", "anthropic"],
        *,
        api_key: str,
        base_url: str | None = None,
        read_s: float = _READ_S,
    ) -> None:
        self._dialect: Literal["openai", "anthropic"] = dialect
        self._key = api_key
        self._read_s = read_s
        base = (base_url or _BASE_URLS[dialect]).rstrip("/")
        self._base = base if dialect == "openai" else f"{base}/v1"
        self._trusted = httpx.create_ssl_context()

    @asynccontextmanager
    async def open(self, request: NativeRequest) -> AsyncGenerator[NativeAnswer]:
        """Send a request once; leaving the context closes the provider's connection.

        Raises:
            ModelError: no connection, or silence.
        """
        async with self._connect() as http:
            built = http.build_request(
                "POST",
                f"{self._base}/{request.accepted.endpoint}",
                params=request.query or None,
                content=request.body,
                headers={
                    **request.headers,
                    **self._credentials(request.headers),
                    "accept-encoding": "identity",
                },
            )
            try:
                response = await http.send(built, stream=True)
            except httpx.HTTPError as error:
                raise _failed(error) from error
            kept = {name: value for name, value in response.headers.items() if name.lower() in _RETURNED}
            yield NativeAnswer(response.status_code, kept, _read(response))

    def _connect(self) -> httpx.AsyncClient:
        """A client for one request, whose end closes the connection in every state.

        An agent can hang up at any moment, and a pool keeps, for ever, a connection whose request is
        cancelled before its first byte.
        """
        return httpx.AsyncClient(
            verify=self._trusted,
            timeout=httpx.Timeout(self._read_s, connect=_CONNECT_S),
            follow_redirects=False,  # a key goes to one host only
        )

    def _credentials(self, headers: Mapping[str, str]) -> dict[str, str]:
        if self._dialect == "openai":
            return {"authorization": f"Bearer {self._key}"} if self._key else {}
        version = headers.get("anthropic-version", _ANTHROPIC_VERSION)
        return {"x-api-key": self._key or "none", "anthropic-version": version}

    async def close(self) -> None:
        """Nothing is held between two requests."""


async def _read(response: httpx.Response) -> AsyncIterator[bytes]:
    try:
        async for chunk in response.aiter_bytes():
            yield chunk
    except httpx.HTTPError as error:
        raise _failed(error) from error


def _failed(error: httpx.HTTPError) -> ModelError:
    if isinstance(error, httpx.TimeoutException):
        return ModelError("the model provider fell silent", status=504, retryable=True, cause="timeout")
    return ModelError(
        f"the connection to the model provider failed ({type(error).__name__})",
        retryable=True,
        cause="unreachable",
    )

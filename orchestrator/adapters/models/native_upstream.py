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
        base = (base_url or _BASE_URLS[dialect]).rstrip("/")
        self._base = base if dialect == "openai" else f"{base}/v1"
        # No redirects: a key goes to one host only.
        self._http = httpx.AsyncClient(
            timeout=httpx.Timeout(read_s, connect=_CONNECT_S),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
            follow_redirects=False,
        )

    @asynccontextmanager
    async def open(self, request: NativeRequest) -> AsyncGenerator[NativeAnswer]:
        """Send a request once; leaving the context closes the provider's connection.

        Raises:
            ModelError: no connection, or silence.
        """
        built = self._http.build_request(
            "POST",
            f"{self._base}/{request.accepted.endpoint}",
            params=request.query or None,
            content=request.body,
            headers={**request.headers, **self._credentials(request.headers), "accept-encoding": "identity"},
        )
        try:
            response = await self._http.send(built, stream=True)
        except httpx.HTTPError as error:
            raise _failed(error) from error
        try:
            kept = {name: value for name, value in response.headers.items() if name.lower() in _RETURNED}
            yield NativeAnswer(response.status_code, kept, _read(response))
        finally:
            await response.aclose()

    def _credentials(self, headers: Mapping[str, str]) -> dict[str, str]:
        if self._dialect == "openai":
            return {"authorization": f"Bearer {self._key}"} if self._key else {}
        version = headers.get("anthropic-version", _ANTHROPIC_VERSION)
        return {"x-api-key": self._key or "none", "anthropic-version": version}

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()


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

"""Native model requests that are cancelled at every moment: no connection outlives its request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from orchestrator.adapters.models.native_upstream import NativeUpstream
from orchestrator.domain.native.judge import Accepted
from orchestrator.domain.native.names import Dialect, Endpoint
from orchestrator.ports import native_models
from tests.support.deadline import eventually
from tests.support.orchestrator import http_over
from worker.clock import SystemClock
from worker.relay import upstream
from worker.token import Token

_STEPS = 40


class Silent:
    """Takes connections and says nothing.

    Attributes:
        open: how many there are.
        asked: how many brought a request.
    """

    def __init__(self) -> None:
        self.open = 0
        self.asked = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        try:
            while data := await reader.read(65_536):
                self.asked += b"HTTP/1.1" in data
        except ConnectionError:
            pass
        finally:
            self.open -= 1
            writer.close()


@asynccontextmanager
async def to_provider(silent: Silent, _directory: Path) -> AsyncGenerator[NativeUpstream]:
    server = await asyncio.start_server(silent.serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield NativeUpstream("openai", api_key="k", base_url=f"http://127.0.0.1:{port}")


@asynccontextmanager
async def to_orchestrator(silent: Silent, directory: Path) -> AsyncGenerator[upstream.Upstream]:
    path = directory / "s"
    async with await asyncio.start_unix_server(silent.serve, str(path)):
        yield upstream.Upstream(
            lambda: http_over(socket=path), "job", Token("t"), renew=_never, clock=SystemClock()
        )


async def _never() -> None:
    raise AssertionError("nothing to renew")


Connected = Callable[[Silent, Path], AbstractAsyncContextManager[NativeUpstream | upstream.Upstream]]
ACCEPTED = Accepted(Dialect.OPENAI, Endpoint.CHAT, "m", renamed=False, stream=False)


def asked(line: NativeUpstream | upstream.Upstream) -> AbstractAsyncContextManager[object]:
    if isinstance(line, NativeUpstream):
        return line.open(native_models.NativeRequest("job", "openai:m", ACCEPTED, "", {}, b"{}"))
    return line.open(upstream.NativeRequest("POST", "llm/openai/v1/chat/completions", body=b"{}"))


async def ask(line: NativeUpstream | upstream.Upstream) -> None:
    async with asked(line):
        raise AssertionError("nobody answers")


@pytest.mark.parametrize("connected", [to_provider, to_orchestrator])
async def test_a_request_cancelled_at_any_moment_leaves_no_connection_open(
    tmp_path: Path, connected: Connected
) -> None:
    """BR-146 (g): while it connects, between that and its first byte, while it is sent, and before an answer."""
    silent = Silent()
    async with connected(silent, tmp_path) as line:
        for steps in range(_STEPS):
            asking = asyncio.create_task(ask(line))
            for _ in range(steps):
                await asyncio.sleep(0)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        assert silent.asked, "no request got as far as that"
        await eventually(lambda: silent.open == 0, 60.0)

"""PD-14: a job watched over orchestrators that come and go."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from orchestrator.cli.client import OperatorClient
from orchestrator.cli.interrupts import Interrupts
from orchestrator.cli.output import Output
from orchestrator.cli.watching import Outcome, Watch
from orchestrator.home import operator_token
from orchestrator.settings import Settings
from tests.support.deadline import within


class _Silent(httpx.AsyncByteStream):
    """A timeline on which nothing comes."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""


class _JustKilled(httpx.AsyncBaseTransport):
    """The timeline is still open; whatever else is asked meets nobody."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return httpx.Response(200, stream=_Silent())
        raise httpx.ConnectError("Connection refused")


class _Next(httpx.AsyncBaseTransport):
    """Takes a cancellation; the job has ended then."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(f"{request.method} {request.url.path.removeprefix('/api/v1/jobs/')}")
        return httpx.Response(200, content=json.dumps({"state": "cancelled"}))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = Settings(home=tmp_path)
    operator_token(made.operator_token_file)
    return made


async def test_a_cancellation_that_nobody_took_is_asked_of_the_next_orchestrator(settings: Settings) -> None:
    """BR-108: an orchestrator that is killed in the same moment takes no person's wish with it."""
    the_next = _Next()
    with Interrupts() as interrupts:
        watch = Watch(Output(as_json=True), interrupts, cancels=True)
        os.kill(os.getpid(), signal.SIGTERM)
        async with OperatorClient(settings, _JustKilled(), where="x", embedded=False) as client:
            assert await within(60.0, watch.follow(client, "j")) is Outcome.LOST
        async with OperatorClient(settings, the_next, where="x", embedded=False) as client:
            assert await within(60.0, watch.follow(client, "j")) is Outcome.ENDED
    assert the_next.asked == ["POST j/cancel", "GET j/events", "GET j"]

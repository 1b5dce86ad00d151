"""The sockets of jobs: what is left of one that was being closed (BR-100)."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from orchestrator.adapters.sockets.unix import SOCKET_NAME, UnixJobSockets
from tests.support.deadline import within

JOB = "01a22dac-c2ef-7147-a20d-43b2fefe51c3"


@pytest.fixture
def root() -> Iterator[Path]:
    """A short path, as sockets need."""
    with tempfile.TemporaryDirectory(prefix="ps-") as made:
        yield Path(made) / "r"


async def test_a_close_that_was_cut_off_is_finished_by_the_next(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """BR-100: an orchestrator that ends while it closes a job's socket leaves no directory of the job."""
    asked = asyncio.Event()

    async def silent(scope: Scope, receive: Receive, send: Send) -> None:
        asked.set()
        await asyncio.Event().wait()

    sockets = UnixJobSockets(root, mark="job")
    sockets.serve(silent)
    directory = await sockets.open(JOB, None)
    transport = httpx.AsyncHTTPTransport(uds=str(directory / SOCKET_NAME))
    async with httpx.AsyncClient(transport=transport, base_url="http://job") as client:
        request = asyncio.create_task(client.get("/"))
        await within(10, asked.wait())
        closing = asyncio.create_task(sockets.close(JOB))
        await asyncio.sleep(0)  # it waits for the request that is never answered
        closing.cancel()
        await asyncio.gather(closing, return_exceptions=True)
        assert JOB in sockets.job_ids()
        await sockets.close(JOB)
        with pytest.raises(httpx.HTTPError):
            await within(10, request)
    assert not directory.exists()
    assert caplog.records == []  # a request that is cut off is no fault of anybody's
    assert JOB not in sockets.job_ids()

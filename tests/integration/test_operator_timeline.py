"""The timeline as the command line reads it, over HTTP (PD-14)."""

from __future__ import annotations

from pathlib import Path

import httpx

from orchestrator.cli.client import OperatorClient
from orchestrator.domain.jobs import JobId, JobState
from orchestrator.main import open_desk
from orchestrator.ports.events import NewEvent
from orchestrator.settings import Settings
from orchestrator.wiring.base import open_state
from tests.support.jobs import START, make_job
from worker.clock import SystemClock

LINE_BREAKS = "a\u2028b\x85c\x0cd\x1ce\r\nf"


async def test_every_event_of_a_long_ended_job_arrives_whatever_text_it_holds(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", database_url="")
    desk = await open_desk(settings, tools=False)
    try:
        stores = await open_state(settings, SystemClock())
        await stores.jobs.add(make_job(state=JobState.COMPLETED))
        events = [
            NewEvent("worker", number, "log", START, {"level": "info", "text": f"{number}{LINE_BREAKS}"})
            for number in range(1, 1301)
        ]
        await stores.events.append(JobId("job-1"), events)
        await stores.close()
        async with OperatorClient.over_app(settings, desk.app) as client:
            live = [event async for event in client.events("job-1")]
            assert [one["data"]["text"] for one in live] == [f"{n}{LINE_BREAKS}" for n in range(1, 1301)]
            assert await client.timeline("job-1") == live
            assert [one async for one in client.events("job-1", after=1299)] == live[1299:]
    finally:
        await desk.close()


async def test_a_desk_needs_neither_engine_nor_lock_and_answers_only_operators(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", engine_url=f"unix://{tmp_path / 'none.sock'}")
    desk = await open_desk(settings, tools=False)
    try:
        transport = httpx.ASGITransport(desk.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://portside") as client:
            assert (await client.get("/api/v1/jobs")).status_code == 401
        async with OperatorClient.over_app(settings, desk.app) as operator:
            assert await operator.get("/api/v1/jobs") == []
        assert not settings.api_socket.exists()
    finally:
        await desk.close()

"""Workers that hang up on a model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.providers import FakeProvider, Nothing, fake_provider
from tests.fakes.tools import SECRET
from tests.support.deadline import eventually, within
from tests.support.orchestrator import wired

LONG = {"messages": [{"role": "user", "content": "word " * 400}]}


@pytest.fixture
async def provider() -> AsyncIterator[FakeProvider]:
    async with fake_provider() as fake:
        fake.plan = [Nothing()]
        yield fake


@pytest.mark.parametrize(
    ("route", "more"), [("llm/complete", {}), ("llm/complete_with_tools", {"tools": []})]
)
async def test_a_worker_that_hangs_up_ends_the_provider_s_request_and_is_charged(
    home: Path, provider: FakeProvider, route: str, more: dict[str, object]
) -> None:
    """BR-146 (g): a cancelled job pays for what its provider has read, and for no more."""
    async with wired(home, model_base_url=provider.url, OPENAI_API_KEY=SECRET) as served:
        worker = await served.worker(model="openai:m")
        asking = asyncio.create_task(worker.post(route, LONG | more))
        await eventually(lambda: provider.seen, 60.0)
        asking.cancel()
        await within(8.0, provider.closed.wait())
        job = await served.until(worker.job_id, lambda job: job.model_requests == 1, 60.0)
        assert job.tokens_used == 500

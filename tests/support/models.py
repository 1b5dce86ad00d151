"""Hosted models that speak to the fake provider, with a clock that steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.adapters.models.hosted import HostedModels, Timeouts
from orchestrator.adapters.models.retries import ProviderRetries
from orchestrator.ports.models import ModelAnswer, ModelMessage, ModelRequest, ModelTool
from tests.fakes.clock import SteppingClock
from tests.fakes.providers import FakeProvider

Dialect = Literal["openai", "anthropic"]
KEY = "sk-test-4f1c9a"


@dataclass(frozen=True)
class Wait:
    """A wait as it was announced."""

    job_id: str
    seconds: float
    reason: str


class HostedUnderTest:
    """One provider under test: its model, the clock it reads and the waits it announced."""

    def __init__(self, dialect: Dialect, fake: FakeProvider, timeouts: Timeouts | None = None) -> None:
        self.dialect: Dialect = dialect
        self.fake = fake
        self.clock = SteppingClock()
        self.waits: list[Wait] = []
        self.model = HostedModels(
            dialect,
            api_key=KEY,
            base_url=f"{fake.url}/v1" if dialect == "openai" else fake.url,
            retries=ProviderRetries(self._on_wait, self.clock, sleep=self.clock.sleep),
            timeouts=timeouts,
        )

    async def _on_wait(self, job_id: str, seconds: float, reason: str) -> None:
        self.waits.append(Wait(job_id, seconds, reason))

    async def ask(
        self,
        messages: Sequence[ModelMessage] = (ModelMessage("user", "hi"),),
        tools: Sequence[ModelTool] | None = None,
        job_id: str = "job-1",
    ) -> ModelAnswer:
        return await self.model.complete(self.request(messages, tools, job_id))

    def request(
        self,
        messages: Sequence[ModelMessage] = (ModelMessage("user", "hi"),),
        tools: Sequence[ModelTool] | None = None,
        job_id: str = "job-1",
    ) -> ModelRequest:
        shown = None if tools is None else tuple(tools)
        return ModelRequest(job_id, f"{self.dialect}:some-model", tuple(messages), shown)

"""The one place that asks a provider again.

The SDKs' own retries are off, and an error that leaves here is never retryable: two owners of retries would
multiply each other's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from secrets import SystemRandom

import anyio

from orchestrator.adapters.models.failures import SDK_ERRORS, bounded, failure_of, model_error
from orchestrator.domain.model_failures import judge
from orchestrator.domain.retry_waits import RetryWaits
from orchestrator.ports.models import ModelAnswer
from tool_registry.clock import Clock

OnWait = Callable[[str, float, str], Awaitable[None]]


class ProviderRetries:
    """Asks until there is an answer, or no sense in asking again.

    Args:
        on_wait: told `(job_id, seconds, reason)` before each wait, so that it becomes an event of the job.
        chance: 0 to 1, spreads the waits of many jobs.
    """

    def __init__(
        self,
        on_wait: OnWait,
        clock: Clock,
        *,
        waits: RetryWaits | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        chance: Callable[[], float] | None = None,
    ) -> None:
        self._on_wait = on_wait
        self._clock = clock
        self._waits = waits or RetryWaits()
        self._sleep = sleep
        self._chance = chance or SystemRandom().random

    async def run(
        self, job_id: str, ask: Callable[[], Awaitable[ModelAnswer]], *, secret: str
    ) -> ModelAnswer:
        """Ask; `secret` is kept out of every message.

        Raises:
            ModelError: the provider's last failure.
        """
        started_s = self._clock.monotonic()
        tries = 0
        while True:
            tries += 1
            try:
                return await ask()
            except SDK_ERRORS as error:
                failure = failure_of(error, self._clock.now())
            verdict = judge(failure)
            wait_s = self._waits.next_wait_s(
                tried=tries,
                asked_s=failure.asked_wait_s,
                elapsed_s=self._clock.monotonic() - started_s,
                chance=self._chance(),
            )
            if not verdict.retry or wait_s is None:
                raise model_error(failure, verdict, secret, tries=tries)
            await self._on_wait(job_id, wait_s, bounded(failure.said, secret))
            await self._sleep(wait_s)

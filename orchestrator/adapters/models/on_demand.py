"""A provider that is made when it is first asked: its libraries take seconds to import."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from orchestrator.ports.models import ModelAnswer, ModelProvider, ModelRequest


class OnDemand:
    """Makes the provider at the first request, off the event loop."""

    def __init__(self, make: Callable[[], ModelProvider]) -> None:
        self._make = make
        self._provider: ModelProvider | None = None
        self._making = asyncio.Lock()

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """As the provider answers."""
        async with self._making:
            if self._provider is None:
                self._provider = await asyncio.to_thread(self._make)
        return await self._provider.complete(request)

    def check(self, model: str) -> None:
        """Every name passes: only the provider itself knows its models."""

    async def close(self) -> None:
        """Let go of the provider, if there is one."""
        if self._provider is not None:
            await self._provider.close()

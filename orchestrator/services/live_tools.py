"""The registry follows its files while the service runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing

import structlog

from orchestrator.ports.file_watch import FileWatch

_log = structlog.get_logger(__name__)


class LiveTools:
    """Has every source of tools look at its files when they may have changed.

    Args:
        watch: hints.
        sources: each brings the registry up to its own files; cheap when nothing changed.
    """

    def __init__(self, watch: FileWatch, sources: Sequence[Callable[[], Awaitable[None]]]) -> None:
        self._watch = watch
        self._sources = tuple(sources)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to follow, in a task of its own, until `close`."""
        self._task = asyncio.get_running_loop().create_task(self._follow(), name="live-tools")

    async def close(self) -> None:
        """Stop following; what is being loaded is given up."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _follow(self) -> None:
        async with aclosing(self._watch.changes()) as hints:
            async for _ in hints:
                for source in self._sources:
                    try:
                        await source()
                    except Exception:  # noqa: BLE001 - one broken source must not end the others' following
                        _log.exception("tools_not_refreshed")

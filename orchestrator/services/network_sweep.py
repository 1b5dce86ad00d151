"""The routing sweep: time alone changes who can take a task."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from orchestrator.ports.errors import StoreError
from orchestrator.services.network import NetworkService

_log = structlog.get_logger(__name__)
PERIOD_S = 5.0


class Arrivals:
    """Tells those who wait for deliveries that there may be some; a hint that can be lost."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[], None]] = []

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener` at every announcement from now on."""
        self._listeners.append(listener)

    def announce(self) -> None:
        """Something was sent or offered to somebody."""
        for listener in self._listeners:
            listener()


class NetworkSweep:
    """Looks at what waits, every few seconds; events are acted on where they happen.

    Args:
        service: the networks.
        changed: called when offers were made or taken back.
        period_s: between two looks.
    """

    def __init__(
        self, service: NetworkService, changed: Callable[[], None], *, period_s: float = PERIOD_S
    ) -> None:
        self._service = service
        self._changed = changed
        self._period_s = period_s
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look now and from now on, until `close`."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            try:
                if await self._service.sweep():
                    self._changed()
            except StoreError as error:
                _log.warning("store_unreachable", reason=str(error))
            except Exception:  # noqa: BLE001 - whatever broke, the next look is the only way to recover
                _log.exception("network_sweep_broke")
            await asyncio.sleep(self._period_s)

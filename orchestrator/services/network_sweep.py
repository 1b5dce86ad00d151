"""The routing sweep: time alone changes who can take a task."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from orchestrator.ports.errors import StoreError
from orchestrator.services.network import NetworkService
from orchestrator.services.network_autostart import Autostart

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
        autostart: looks, at every hint too, for agents to start.
        period_s: between two looks.
    """

    def __init__(
        self,
        service: NetworkService,
        changed: Callable[[], None],
        *,
        autostart: Autostart | None = None,
        period_s: float = PERIOD_S,
    ) -> None:
        self._service = service
        self._changed = changed
        self._autostart = autostart
        self._hint = asyncio.Event()
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

    def wake(self) -> None:
        """Something was sent or offered: somebody may have to be started for it."""
        self._hint.set()

    async def _run(self) -> None:
        while True:
            await self._look(sweep=True)
            deadline_s = asyncio.get_running_loop().time() + self._period_s
            while await self._hinted(deadline_s):
                await self._look(sweep=False)

    async def _hinted(self, deadline_s: float) -> bool:
        """Wait for a hint; False when the time is up, however many there are."""
        if asyncio.get_running_loop().time() >= deadline_s:
            return False
        try:
            async with asyncio.timeout_at(deadline_s):
                await self._hint.wait()
        except TimeoutError:
            return False
        self._hint.clear()
        return True

    async def _look(self, *, sweep: bool) -> None:
        try:
            if sweep and await self._service.sweep():
                self._changed()
            if self._autostart is not None:
                await self._autostart.look()
        except StoreError as error:
            _log.warning("store_unreachable", reason=str(error))
        except Exception:  # noqa: BLE001 - whatever broke, the next look is the only way to recover
            _log.exception("network_sweep_broke")

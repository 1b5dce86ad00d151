"""What comes from outside while the agent works: prompts, messages, offers, and the call to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from tool_registry.errors import PortsideError
from worker.errors import job_is_over
from worker.protocol.job import Delivery
from worker.transport import Transport

_WAIT_S = 25.0
_PAUSE_S = 2.0
_BREATH_S = 0.2


class Inbox:
    """Polls in the background, and hands over between two steps.

    A delivery is acknowledged once the model has answered a request that shows it, so one that the model
    never saw is sent again, to whoever comes next. A `cancel` is passed on at once.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        on_cancel: Callable[[str], None],
        on_job_over: Callable[[PortsideError], None],
    ) -> None:
        self._transport = transport
        self._on_cancel = on_cancel
        self._on_job_over = on_job_over
        self._waiting: dict[str, Delivery] = {}
        self._taken: set[str] = set()
        self._not_shown: list[str] = []
        self._unacknowledged: list[str] = []

    @property
    def waiting(self) -> bool:
        """Whether something has come that was not taken yet."""
        return bool(self._waiting)

    def take(self) -> Sequence[Delivery]:
        """What has come since the last time, in order."""
        deliveries = list(self._waiting.values())
        self._waiting.clear()
        self._taken.update(one.delivery_id for one in deliveries)
        self._not_shown.extend(one.delivery_id for one in deliveries)
        return deliveries

    def shown(self) -> None:
        """The model has answered a request with all that was taken."""
        self._unacknowledged.extend(self._not_shown)
        self._not_shown.clear()

    async def run(self) -> None:
        """Poll until cancelled, or until the job is over."""
        while True:
            try:
                fresh = await self._poll(_WAIT_S)
            except PortsideError as error:
                if job_is_over(error):
                    self._on_job_over(error)
                    return
                await asyncio.sleep(_PAUSE_S)  # an outage: the next poll waits for the end of it
                continue
            if not fresh:
                # Known deliveries are answered at once until they are acknowledged: don't spin on them.
                await asyncio.sleep(_PAUSE_S if self._waiting or self._not_shown else _BREATH_S)

    async def acknowledge(self) -> None:
        """Acknowledge what the model was shown, without waiting for more."""
        if self._unacknowledged:
            await self._poll(0.0)

    async def _poll(self, wait_s: float) -> bool:
        acknowledged = list(self._unacknowledged)
        deliveries = await self._transport.deliveries(acknowledged, wait_s)
        self._unacknowledged = [one for one in self._unacknowledged if one not in acknowledged]
        fresh = False
        for delivery in deliveries:
            if delivery.delivery_id in self._taken:
                if delivery.delivery_id not in (*self._unacknowledged, *self._not_shown):
                    self._unacknowledged.append(delivery.delivery_id)
            elif delivery.delivery_id not in self._waiting:
                fresh = True
                self._accept(delivery)
        return fresh

    def _accept(self, delivery: Delivery) -> None:
        if delivery.kind == "cancel":
            self._taken.add(delivery.delivery_id)
            self._unacknowledged.append(delivery.delivery_id)
            self._on_cancel(delivery.text)
        else:
            self._waiting[delivery.delivery_id] = delivery

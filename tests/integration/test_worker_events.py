"""Events out and deliveries in, over lines that fail (PD-10)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tests.fakes.transport import MemoryTransport
from tests.support.deadline import eventually, within
from tool_registry.errors import PortsideError, RemoteProblem
from worker.clock import SystemClock
from worker.errors import OrchestratorUnreachable
from worker.events import EventSink, preview
from worker.inbox import Inbox
from worker.protocol.events import EventBatch
from worker.protocol.job import Delivery


class Failing(MemoryTransport):
    """A line that fails as often as it is told."""

    def __init__(self, *errors: PortsideError) -> None:
        super().__init__()
        self.errors = list(errors)
        self.sizes: list[int] = []

    async def events(self, batch: EventBatch) -> None:
        self.sizes.append(len(batch.events))
        if self.errors:
            raise self.errors.pop(0)
        await super().events(batch)


def texts(transport: MemoryTransport) -> list[str]:
    return [data.text for data in transport.data("log")]


async def test_events_wait_through_an_outage_and_arrive_once_in_order() -> None:
    transport = Failing(OrchestratorUnreachable("away"))
    sink = EventSink(transport, SystemClock())
    for n in range(250):
        sink.log("info", str(n))
    assert not await sink.flush(1.0)
    assert await sink.flush(1.0)
    assert texts(transport) == [str(n) for n in range(250)]
    assert transport.sizes == [100, 100, 100, 50]


async def test_what_is_beyond_the_bound_is_lost_oldest_first_and_the_timeline_says_so() -> None:
    transport = Failing()
    sink = EventSink(transport, SystemClock(), max_waiting=3)
    for n in range(5):
        sink.log("info", str(n))
    assert await sink.flush(1.0)
    assert texts(transport)[:2] == ["3", "4"]
    assert "lost" in texts(transport)[-1]


async def test_a_refused_batch_does_not_block_the_next() -> None:
    transport = Failing(RemoteProblem("bad", code="invalid_request", retryable=False))
    sink = EventSink(transport, SystemClock())
    sink.log("info", "refused")
    assert await sink.flush(1.0)
    sink.log("info", "next")
    assert await sink.flush(1.0)
    assert texts(transport)[0] == "next"
    assert "1 events" in texts(transport)[1]


async def test_a_job_that_is_over_takes_no_more_events() -> None:
    transport = Failing(RemoteProblem("over", code="job_not_active", retryable=False))
    sink = EventSink(transport, SystemClock())
    sink.log("info", "a")
    assert await sink.flush(1.0)
    sink.log("info", "b")
    assert await sink.flush(1.0)
    assert transport.sizes == [1]


async def test_an_endless_send_is_given_up_in_time() -> None:
    class Stalled(MemoryTransport):
        async def events(self, batch: EventBatch) -> None:
            await asyncio.Event().wait()

    sink = EventSink(Stalled(), SystemClock())
    sink.log("info", "a")
    assert not await sink.flush(0.05)


def test_a_preview_is_short_however_large_the_value() -> None:
    shown = preview({"content": "x" * 1_000_000, "list": list(range(10_000)), "deep": {"a": ["y" * 5_000]}})
    assert len(str(shown)) < 5_000
    assert "characters more" in shown["content"]


async def test_a_delivery_that_is_sent_again_is_taken_once_and_acknowledged_again() -> None:
    class Deaf(MemoryTransport):
        """Loses the first acknowledgement."""

        async def deliveries(self, ack: Sequence[str], wait_s: float) -> Sequence[Delivery]:
            self.acknowledged.extend(ack)
            if len(self.acknowledged) < 2:
                return [Delivery(delivery_id="d", kind="prompt", text="x")]
            await asyncio.sleep(0.01)
            return []

    transport = Deaf()
    inbox = Inbox(transport, on_cancel=lambda _text: None, on_job_over=lambda _error: None)
    polling = asyncio.create_task(inbox.run())
    await eventually(lambda: inbox.waiting)
    taken = list(inbox.take())
    inbox.shown()
    await eventually(lambda: len(transport.acknowledged) >= 2)
    polling.cancel()
    assert [one.delivery_id for one in [*taken, *inbox.take()]] == ["d"]
    assert transport.acknowledged == ["d", "d"]


async def test_the_end_of_the_job_ends_the_polling_and_an_outage_does_not() -> None:
    class Ending(MemoryTransport):
        async def deliveries(self, ack: Sequence[str], wait_s: float) -> Sequence[Delivery]:
            raise RemoteProblem("over", code="token_revoked", retryable=False)

    ended: list[str] = []
    inbox = Inbox(
        Ending(), on_cancel=lambda _text: None, on_job_over=lambda error: ended.append(error.message)
    )
    await within(5.0, inbox.run())
    assert ended == ["over"]

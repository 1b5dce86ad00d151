"""PD-70: two joined connections: bytes both ways, an end for the silent and for the slow."""

from __future__ import annotations

import asyncio
import socket

import pytest

from orchestrator.ports.egress import Way
from orchestrator.services.egress_share import Share
from orchestrator.services.tunnels import Joined
from tests.support.deadline import within


def free(_count: int) -> bool:
    return True


async def ends() -> tuple[Way, Way]:
    """Two ends of one connection."""
    one, other = socket.socketpair()
    return await asyncio.open_connection(sock=one), await asyncio.open_connection(sock=other)


@pytest.fixture
async def pair() -> tuple[Way, Way, Way, Way]:
    client, inner = await ends()
    outer, server = await ends()
    return client, inner, outer, server


async def test_bytes_go_both_ways_until_both_ends_are_through(pair: tuple[Way, Way, Way, Way]) -> None:
    client, inner, outer, server = pair
    joined = asyncio.create_task(Joined(inner, outer, idle_s=30, spend=free).run())
    client[1].write(b"question")
    client[1].write_eof()
    assert await within(5, server[0].read()) == b"question"
    server[1].write(b"answer")
    server[1].write_eof()
    assert await within(5, client[0].read()) == b"answer"
    await within(5, joined)
    for _, writer in pair:
        writer.close()


async def test_silence_ends_it(pair: tuple[Way, Way, Way, Way]) -> None:
    await within(5, Joined(pair[1], pair[2], idle_s=0.05, spend=free).run())
    for _, writer in pair:
        writer.close()


async def test_an_end_that_takes_nothing_ends_it_and_holds_no_more_than_a_buffer(
    pair: tuple[Way, Way, Way, Way],
) -> None:
    client, inner, outer, _ = pair

    async def flood() -> int:
        sent = 0
        while True:
            client[1].write(bytes(65536))
            await client[1].drain()
            sent += 65536
            assert sent < 64 * 2**20

    flooding = asyncio.create_task(flood())
    await within(10, Joined(inner, outer, idle_s=0.3, spend=free).run())
    assert not flooding.done()
    flooding.cancel()
    for _, writer in pair:
        writer.transport.abort()


async def test_what_a_job_may_carry_is_counted_both_ways_and_ends_it(pair: tuple[Way, Way, Way, Way]) -> None:
    client, inner, outer, server = pair
    share = Share(rate_per_s=1, burst=1, left_bytes=10)
    joined = asyncio.create_task(Joined(inner, outer, idle_s=30, spend=share.spend).run())
    client[1].write(b"12345")
    assert await within(5, server[0].readexactly(5)) == b"12345"
    server[1].write(b"1234567")
    await within(5, joined)
    assert share.left_bytes <= 0
    for _, writer in pair:
        writer.close()


async def test_connections_that_come_too_fast_wait_for_their_turn() -> None:
    share = Share(rate_per_s=100, burst=5, left_bytes=1)
    loop = asyncio.get_running_loop()
    began = loop.time()
    for _ in range(25):
        await share.turn()
    assert loop.time() - began >= 20 / 100


async def test_an_end_that_breaks_ends_it(pair: tuple[Way, Way, Way, Way]) -> None:
    joined = asyncio.create_task(Joined(pair[1], pair[2], idle_s=30, spend=free).run())
    pair[3][1].transport.abort()
    pair[0][1].transport.abort()
    await within(5, joined)
    for _, writer in pair:
        writer.close()

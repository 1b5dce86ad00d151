"""Waiting for a condition, with a deadline instead of a sleep of fixed length."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def eventually(condition: Callable[[], object], within_s: float = 10.0) -> None:
    """Return as soon as `condition()` is true; fail when it is not within the deadline."""
    loop = asyncio.get_running_loop()
    end = loop.time() + within_s
    while not condition():
        assert loop.time() < end, f"not within {within_s:g} s: {condition}"
        await asyncio.sleep(0.01)


async def within(seconds: float, work: Awaitable[T]) -> T:
    """The result of `work`; fails when it takes longer."""
    async with asyncio.timeout(seconds):
        return await work

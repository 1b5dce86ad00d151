"""Waiting for something that announces itself to nobody: a condition, asked until it holds or time is up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


async def until(condition: Callable[[], Awaitable[bool]], *, within_s: float = 20.0) -> None:
    """Return as soon as the condition holds; fail after `within_s`."""
    async with asyncio.timeout(within_s):
        while not await condition():  # noqa: ASYNC110 -- it has no event
            await asyncio.sleep(0.02)
